"""`--dry-run`: exactly what a submission would create, and what an API server says to it."""

from __future__ import annotations

import sys
from typing import Any

from regatta.cli.settings import Settings
from regatta.cli.show.explain import show_problems
from regatta.cli.show.output import dump
from regatta.cli.submit.jobfile import DryRun
from regatta.engines.base import Preview, Submission


def show_dry_run(
    kind: DryRun, submission: Submission, output: str | None, settings: Settings
) -> None:
    # On a machine the server works out both: it is who would create.
    if kind is DryRun.SERVER and settings.on_cluster:
        show_answer(settings.cluster().ask_server(submission), output, settings)
    else:
        show_preview(settings.connect().preview(submission), output, settings)


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
