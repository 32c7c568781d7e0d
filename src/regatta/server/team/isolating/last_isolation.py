"""What kept members apart when a team's jobs were last served from this folder.

A start that forgets `--isolation` must not turn every member's next job into the server's own
process: what is weaker than before has to be asked for on the command line itself.
"""

from __future__ import annotations

from pathlib import Path

from regatta.api.errors import BadSetting
from regatta.server.team.isolating.isolation import Kind

#: Beside the server's other files.
FILE = "isolation"


def require_no_weaker(folder: Path, kind: Kind, *, on_command_line: bool) -> None:
    """Raises BadSetting."""
    before = _last(folder)
    if kind == "none" and before not in ("", "none") and not on_command_line:
        raise BadSetting(
            f"isolation is none, and the server on {folder} last ran with {before}, which kept "
            f"members apart; add --isolation {before} to start it as before, or --isolation none "
            "where that is meant"
        )


def remember(folder: Path, kind: Kind) -> None:
    if _last(folder) == kind:
        return
    draft = folder / f".{FILE}"
    draft.write_text(kind, encoding="ascii")
    draft.replace(folder / FILE)


def _last(folder: Path) -> str:
    try:
        return (folder / FILE).read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""
