"""`$(VAR)` as Kubernetes reads it."""

from __future__ import annotations

import pytest

from regatta.controller.environment.references import TOO_LONG, TooLong, expand

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


HALF = {"A": "x" * 65_535, "NOTHING": ""}


@pytest.mark.parametrize("text", ["$(A)$(A)y", "$(A)y$(A)$(NOTHING)", "$(NOTHING)y$(A)$(A)"])
def test_what_a_program_can_just_be_given_is_made(text: str) -> None:
    """131,071 bytes are the most: execve(2)."""
    assert len(expand(text, HALF)) == 131_071


@pytest.mark.parametrize("text", ["$(A)yy$(A)", "$(A)yy$(A)$(NOTHING)", "y" * 65_537 + "$(A)"])
def test_what_no_program_could_be_given_is_not_made(text: str) -> None:
    with pytest.raises(TooLong):
        expand(text, HALF)
    assert "longer than the 131,071 bytes" in TOO_LONG
