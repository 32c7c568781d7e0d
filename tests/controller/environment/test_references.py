"""`$(VAR)` as Kubernetes reads it."""

from __future__ import annotations

import pytest

from regatta.controller.environment.references import TooLong, expand

TEXTS = {
    "a name that is known": ("$(A)/x", "1/x"),
    "several": ("$(A)$(B)", "12"),
    "a name that nobody defines stays": ("$(C)", "$(C)"),
    "a dollar for a dollar": ("$$(A)", "$(A)"),
    "a shell's own variables stay": ("$A ${A} $", "$A ${A} $"),
    "what is put in is not read again": ("$(AGAIN)", "$(A)"),
    "an empty name stays": ("$()", "$()"),
}


@pytest.mark.parametrize(("text", "meant"), TEXTS.values(), ids=TEXTS)
def test_references_are_replaced_once(text: str, meant: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "AGAIN": "$(A)"}) == meant


@pytest.mark.parametrize("times", [1, 2])
def test_what_no_program_could_be_given_is_not_made(times: int) -> None:
    """131,071 bytes are the most: execve(2)."""
    half = {"A": "x" * 65_535}
    assert len(expand("$(A)$(A)y", half)) == 131_071
    with pytest.raises(TooLong):
        expand("$(A)$(A)zz" + "$(A)" * times, half)
