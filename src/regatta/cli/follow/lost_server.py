"""What whoever follows is told when the other end is away: once, and beside the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from regatta.cli.settings import Settings


def away(settings: Settings) -> str:
    """The sentence, for those who print it elsewhere."""
    where = f" at {settings.server}" if settings.server else ""
    return f"the {settings.chosen.far_end}{where} is away; looking for it"


def say_away(settings: Settings) -> None:
    click.echo(f"-- {away(settings)}", err=True)
