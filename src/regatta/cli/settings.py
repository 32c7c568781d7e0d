"""What holds for every verb: which server, which namespace, colour or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from regatta.cli.ansi import Paint, wants_colour

if TYPE_CHECKING:
    from regatta.client.client import Client

HELP_NAMES = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Settings:
    def __init__(self) -> None:
        self.server: str | None = os.environ.get("REGATTA_SERVER") or None
        #: As `-n` or REGATTA_NAMESPACE says; None leaves a job file its own word.
        self.named_namespace: str | None = os.environ.get("REGATTA_NAMESPACE") or None
        self.no_color = False

    @property
    def namespace(self) -> str:
        return self.named_namespace or "default"

    def connect(self, *, start: bool = True) -> Client:
        from regatta.client.connection import connect

        return connect(self.server, start=start)

    @property
    def paint(self) -> Paint:
        return Paint(wants_colour(sys.stdout, refused=self.no_color))

    @property
    def terminal(self) -> bool:
        """Whether somebody watches: live views are for them, plain lines for everybody else."""
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def remember(field: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Options that hold for every verb write here, wherever on the line they stand."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is not None and value is not False:
            setattr(context.ensure_object(Settings), field, value)
        return value

    return callback


def shared_options() -> list[click.Parameter]:
    def option(*names: str, field: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=remember(field), **more)

    return [
        option(
            "-n",
            "--namespace",
            field="named_namespace",
            metavar="NAME",
            help="Namespace of the job.",
        ),
        option(
            "--server", field="server", metavar="URL", help="A server other than this machine's."
        ),
        option("--no-color", field="no_color", is_flag=True, help="Print without colours."),
    ]


class ReaderLeft(Exception):
    """Whoever read our output has closed it (`| head`)."""


class Verb(click.Command):
    """A command that also takes the options of every verb."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("context_settings", HELP_NAMES)
        super().__init__(*args, **more)
        taken = {name for parameter in self.params for name in parameter.opts}
        self.params += [p for p in shared_options() if not taken & set(p.opts)]

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError as broken:  # click would make an exit with 1 of it
            raise ReaderLeft from broken


def verb(name: str, **more: Any) -> Callable[[Callable[..., Any]], click.Command]:
    return click.command(name, cls=Verb, **more)


pass_settings = click.make_pass_decorator(Settings, ensure=True)
