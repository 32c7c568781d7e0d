"""`-o json` and `-o yaml`: what the server answered, for programs to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec

from regatta.api.job import Job, document


def output_option(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "-o", "--output", "output", type=click.Choice(formats), help="Another form of output."
    )


def plain(value: Any) -> Any:
    """JSON-ready, as the REST API writes it."""
    if isinstance(value, Job):
        return document(value)
    return msgspec.to_builtins(value)


def listing(values: Sequence[Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [plain(value) for value in values]}


def dump(value: Any, output: str) -> str:
    """The text of `value` in `output` (json or yaml), without a final newline."""
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip("\n")
