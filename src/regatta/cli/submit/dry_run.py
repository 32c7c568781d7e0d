"""`--dry-run`: exactly what a submission would create, and what an API server says to it."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from regatta.cli.settings import Settings
from regatta.cli.show.explain import show_problems
from regatta.cli.show.output import dump
from regatta.engines.base import Preview, Shell, Submission


class DryRun(Enum):
    NO = ""
    CLIENT = "client"
    SERVER = "server"

    def __bool__(self) -> bool:
        return self is not DryRun.NO

    @classmethod
    def of(cls, options: dict[str, Any]) -> DryRun:
        """Takes its options out of the others."""
        here, by_server = options.pop("dry_run"), options.pop("dry_run_by_server")
        return cls.SERVER if by_server else cls.CLIENT if here else cls.NO


def show_dry_run(
    kind: DryRun,
    submission: Submission,
    shell: Shell | None,
    output: str | None,
    settings: Settings,
) -> None:
    stored = kind is DryRun.SERVER
    preview = settings.engine().preview(submission, shell, stored=stored)
    # A machine's server works out all of it in both cases: it is who would create.
    if stored and not preview.environment:
        show_answer(preview, output, settings)
    else:
        show_preview(preview, output, settings)


def show_answer(answer: Preview, output: str | None, settings: Settings) -> None:
    """The objects as the API server would store them."""
    if output == "json":
        print(dump({"objects": list(answer.objects)}, "json"))
    else:
        print("---\n".join(dump(each, "yaml") + "\n" for each in answer.objects), end="")
    _remarks(answer, settings)


def show_preview(preview: Preview, output: str | None, settings: Settings) -> None:
    """Objects in creation order, then per pod its environment and ports. Warnings and notes go to
    stderr, so that stdout can be read by a program."""
    if output == "json":
        print(dump(_whole(preview), "json"))
    else:
        documents = [*preview.objects, _whole(preview, objects=False)]
        print("---\n".join(dump(document, "yaml") + "\n" for document in documents), end="")
    _remarks(preview, settings)


def _remarks(preview: Preview, settings: Settings) -> None:
    show_problems(preview.warnings, settings)
    for note in preview.notes:
        print(f"  note: {note}", file=sys.stderr)


def _whole(preview: Preview, *, objects: bool = True) -> dict[str, Any]:
    return {
        **({"objects": list(preview.objects)} if objects else {}),
        "environment": preview.environment,
        "ports": {
            pod: {"first": first, "last": last} for pod, (first, last) in preview.ports.items()
        },
    }
