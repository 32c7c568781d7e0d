"""What holds for every verb: which engine, which namespace, colour or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import click

from regatta.cli.show.ansi import Paint, harmless, wants_colour

if TYPE_CHECKING:
    from regatta.cli.engine_choice import Chosen, Given
    from regatta.engines.blocking import Blocking

HELP_NAMES = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Settings:
    def __init__(self) -> None:
        self.named_engine: str | None = None
        self.named_context: str | None = None
        self.named_kubeconfig: str | None = None
        self.named_server: str | None = None
        #: As `-n` or REGATTA_NAMESPACE says; None leaves a job file its own word.
        self.named_namespace: str | None = os.environ.get("REGATTA_NAMESPACE") or None
        self.no_color = False
        #: The command line as it was written, without the program's name.
        self.words: list[str] = []
        self._chosen: Chosen | None = None
        self._engine: Blocking | None = None

    @property
    def server(self) -> str | None:
        return self.named_server or os.environ.get("REGATTA_SERVER") or None

    @property
    def chosen(self) -> Chosen:
        from regatta.cli.engine_choice import choose

        if self._chosen is None:
            self._chosen = choose(self._given())
        return self._chosen

    @property
    def namespace(self) -> str:
        return self.named_namespace or self.engine().traits().namespace

    def engine(self, *, start: bool = True) -> Blocking:
        """The one that was chosen. A server of this machine is started on first use, unless the
        first who asks says otherwise."""
        if self._engine is None:
            from regatta.cli.show.rows import SPELLING

            opened = self._engine = self.chosen.open(self.server, start=start)
            SPELLING.speak(lambda: opened.traits().namespace, self._given().again)
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            from regatta.cli.show.rows import SPELLING

            self._engine.close()
            self._engine = None
            SPELLING.forget()

    def _given(self) -> Given:
        from regatta.cli.engine_choice import Given

        return Given(
            self.named_engine, self.named_context, self.named_kubeconfig, self.named_server
        )

    @property
    def paint(self) -> Paint:
        return Paint(wants_colour(sys.stdout, refused=self.no_color))

    @property
    def terminal(self) -> bool:
        """Whether somebody watches: live views are for them, plain lines for everybody else."""
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def page(self, lines: Iterable[str]) -> str:
        """Lines that may hold what a replica said, for whoever reads our output."""
        return "\n".join(map(harmless, lines) if self.terminal else lines)


def remember(field: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Options that hold for every verb write here, wherever on the line they stand."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is not None and value is not False:
            setattr(context.ensure_object(Settings), field, value)
        return value

    return callback


def shared_options() -> list[click.Option]:
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
            "--engine",
            field="named_engine",
            type=click.Choice(["local", "kubernetes"]),
            help="Where jobs run: this machine, or a cluster.",
        ),
        option(
            "--context", field="named_context", metavar="NAME", help="Cluster of the kubeconfig."
        ),
        option(
            "--kubeconfig",
            field="named_kubeconfig",
            metavar="FILE",
            help="Another one than $KUBECONFIG or ~/.kube/config.",
        ),
        option(
            "--server",
            field="named_server",
            metavar="URL",
            help="A server other than this machine's.",
        ),
        option("--no-color", field="no_color", is_flag=True, help="Print without colours."),
    ]


class ReaderLeft(Exception):
    """Whoever read our output has closed it (`| head`)."""


class Verb(click.Command):
    """A command that also takes the options of every verb."""

    #: Of those, what means nothing to it: taken, so that aliases with them work, and not shown.
    unshown: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("context_settings", HELP_NAMES)
        super().__init__(*args, **more)
        taken = {name for parameter in self.params for name in parameter.opts}
        for option in shared_options():
            option.hidden = bool(self.unshown & set(option.opts))
            if not taken & set(option.opts):
                self.params.append(option)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(context, [_spelt_out(word) for word in args])
        except click.NoSuchOption:
            raise
        except click.UsageError as wrong:
            from regatta.cli.other_words import asking

            raise click.UsageError(asking(context, wrong), context) from wrong

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError as broken:  # click would make an exit with 1 of it
            raise ReaderLeft from broken


class AboutAccounts(Verb):
    """Works on a team's database, on the machine that has it."""

    unshown = frozenset({"--namespace", "--context", "--kubeconfig", "--server"})


class AboutSignIns(Verb):
    """Speaks to a team's server, as the account that signed in."""

    unshown = frozenset({"--namespace", "--engine", "--context", "--kubeconfig"})


def _spelt_out(word: str) -> str:
    """click knows options with a value and options without one; this one may have either."""
    option, equals, value = word.partition("=")
    if option != "--dry-run" or not equals:
        return word
    spelt = {"client": "--dry-run", "server": "--dry-run-by-server"}.get(value)
    if spelt is None:
        raise click.UsageError(f"{word}: write --dry-run, or --dry-run=server")
    return spelt


def verb(
    name: str, cls: type[Verb] = Verb, **more: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    return click.command(name, cls=cls, **more)


pass_settings = click.make_pass_decorator(Settings, ensure=True)
