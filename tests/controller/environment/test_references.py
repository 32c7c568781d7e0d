"""`$(VAR)` as Kubernetes reads it."""

from __future__ import annotations

import pytest

from regatta.controller.environment.references import expand

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
