"""Where text is wanted and YAML read something else: how to write it so that it is text."""

from __future__ import annotations

from regatta.api.checks.suggestions import shown
from regatta.api.source.yaml import NO_LINE, Mark


def about_text(value: float, path: str, mark: Mark | None) -> str:
    """`mark` knows how it was written: `010` is eight, and nobody wants `"8"`."""
    text = (mark.text if mark else "") or str(value).lower()
    found = f"{text}, which YAML reads as {shown(value)}" if text != shown(value) else shown(value)
    if mark is not None and mark.line == NO_LINE:
        # A shell takes one pair of quotes away.
        return f"found {found}; it must be text, so keep its quotes: --set '{path}=\"{text}\"'"
    return f'found {found}; it must be text, so put it in quotes: "{text}"'
