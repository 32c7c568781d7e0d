"""Kinds of option values that several verbs take."""

from __future__ import annotations

import click

from regatta.api.amounts import parse_duration


def duration(text: str) -> float:
    """For `type=`: seconds, from 30s, 5m, 1h30m."""
    try:
        return parse_duration(text)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from wrong


def duration_with_unit(text: str) -> float:
    """The same, but for a bare number, which is refused."""
    try:
        return parse_duration(text, with_unit=True)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from wrong
