"""Job names on the command line: one, several or all, and their completion in the shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import Settings

if TYPE_CHECKING:
    from regatta.engines.inventory import RunView

#: Finished jobs whose names complete: the ones that ended last.
MOST_COMPLETED = 100


def job_argument(*, several: bool = False, required: bool = True) -> Callable[..., Any]:
    name = "NAME" if required else "[NAME]"
    return click.argument(
        "names" if several else "name",
        metavar="NAME..." if several else name,
        nargs=-1 if several else 1,
        required=required and not several,
        shell_complete=complete_names,
        callback=as_jobs_are_called,
    )


#: In the names of OpenPAI's jobs, and in none of ours.
_OPENPAI_ALONE = re.compile(r"[A-Z_.]")


def as_jobs_are_called(_: click.Context, __: click.Parameter, said: Any) -> Any:
    """A job of OpenPAI's is found by its own name, too: `Train_it` became train-it-1a2b3c."""
    names = said if isinstance(said, tuple) else (said or "",)
    if not any(_OPENPAI_ALONE.search(name) for name in names):
        return said
    from regatta.api.openpai.dns_names import job_label

    found = tuple(job_label(name) if _OPENPAI_ALONE.search(name) else name for name in names)
    return found if isinstance(said, tuple) else found[0]


def role_meant(settings: Settings, job: str, role: str | None, uid: str = "") -> str | None:
    """A role of OpenPAI's by its own name: `ps_server` is ps-server here."""
    if role is None or not _OPENPAI_ALONE.search(role):
        return role
    tasks = settings.engine().get(settings.namespace, job, uid).spec.tasks
    return next((task.name for task in tasks if task.known_as == role), role)


def uid_option() -> Callable[..., Any]:
    return click.option(
        "--uid",
        metavar="UID",
        default="",
        help="That run, also when another has its name now (`regatta history` lists them).",
    )


def meant(settings: Settings, name: str | None, uid: str, verb: str) -> RunView | None:
    """The run that `--uid` names; None: whoever has the name."""
    if uid:
        return settings.engine().history(settings.namespace, name, uid=uid)[0]
    if name is None:
        raise Stop(
            Exit.INVALID,
            f"which job? `regatta {verb}` needs a name, or --uid",
            "`regatta get` lists the jobs there are, `regatta history` also earlier runs.",
        )
    return None


def complete_names(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
    """Names that start with what was typed. Says nothing when it cannot know: a shell that is
    completing has no place for an error."""
    from regatta.api.errors import RegattaError

    settings = context.find_object(Settings) or Settings()
    try:
        jobs = settings.engine(start=False).list(settings.namespace, finished=MOST_COMPLETED)
    except (RegattaError, Stop):
        return []
    return [job.name for job in jobs if job.name.startswith(typed)]


def one_or_more(names: tuple[str, ...], every: bool, verb: str) -> None:
    """Refuses a command line that names nothing, or both names and --all."""
    if not names and not every:
        raise Stop(
            Exit.INVALID,
            f"which job? `regatta {verb}` needs a name, or --all",
            "`regatta get` lists the jobs there are.",
        )
    if names and every:
        raise Stop(
            Exit.INVALID,
            f"`regatta {verb}` takes names or --all, not both",
            "Leave one of them out.",
        )


def not_here(names: Iterable[str], namespace: str | None) -> Stop:
    """For names under which nothing was found, in one namespace or in all."""
    where = "any namespace" if namespace is None else f"namespace {namespace}"
    return Stop(
        Exit.CONFLICT,
        f"there is no job named {' or '.join(names)} in {where}",
        "`regatta get -A` lists all jobs, and `regatta history -A` the runs on record.",
    )


def for_each(names: list[str], action: Callable[[str], None], settings: Settings) -> Exit:
    """Does it for every name; one that fails does not keep the others from it. The last failure
    is the exit code."""
    from regatta.api.errors import RegattaError, ServerUnreachable
    from regatta.cli.show.explain import explain

    code = Exit.OK
    for name in names:
        try:
            action(name)
        except ServerUnreachable:
            raise  # the others would fare no better
        except RegattaError as refused:
            code = Exit(explain(refused, settings))
    return code
