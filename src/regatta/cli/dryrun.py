"""`--dry-run`: exactly what a submission would create."""

from __future__ import annotations

import sys
from typing import Any

from regatta.cli.explain import show_problems
from regatta.cli.output import dump
from regatta.cli.settings import Settings
from regatta.engines.base import Preview


def show_preview(preview: Preview, output: str | None, settings: Settings) -> None:
    """Objects in creation order, then per pod its environment and ports. Warnings and notes go to
    stderr, so that stdout can be read by a program."""
    if output == "json":
        print(dump(_whole(preview), "json"))
    else:
        documents = [*preview.objects, _whole(preview, objects=False)]
        print("---\n".join(dump(document, "yaml") + "\n" for document in documents), end="")
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
