"""Variables for replicas: `NAME=VALUE` on the command line, or lines of a file."""

from __future__ import annotations

from pathlib import Path

from regatta.cli.outcomes import Exit, Stop


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise Stop(
                Exit.INVALID,
                f"{option} {pair!r} is not NAME=VALUE",
                f"Write it as `{option} {name or 'NAME'}=VALUE`.",
            )
        found[name] = value
    return found


def read_env_file(path: Path) -> dict[str, str]:
    """`K=V` lines; blank lines and `#` lines are skipped, one pair of quotes is removed."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Stop(
            Exit.INVALID,
            f"--env-file {path} cannot be read: {why}",
            "Name a file of NAME=VALUE lines.",
        ) from error
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise Stop(
                Exit.INVALID,
                f"--env-file {path}, line {number}: {line.strip()!r} is not NAME=VALUE",
                "Write one NAME=VALUE per line; lines that start with # are comments.",
            )
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name.strip()] = value
    return found
