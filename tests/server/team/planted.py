"""A secret in a job's config, and everything of a team's server in which it could be found."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import create_engine, inspect, text

from tests.openpai_configs import version_two

#: Nothing else in the world is called this, however it is written down.
PLANTED = "planted-4f1c9e77d2"
#: What a process that has it prints.
SUM = hashlib.md5(PLANTED.encode()).hexdigest()
ROLE = "worker_0"

#: A GET of a server: its status, and the body as text.
Ask = Callable[[str], tuple[int, str]]


def forms(word: str) -> tuple[str, ...]:
    """As it may be written down, where it begins something."""
    return word, base64.b64encode(word.encode()).decode().rstrip("=")


def planted_config(name: str, until: str, image: str = "none") -> str:
    """Its process says that it has the secret, and ends once there is a file `until`."""
    shows = "printf '%s' '<% $secrets.token %>' | md5sum"
    waits = f"until [ -e {until} ]; do sleep 0.1; done"
    return version_two(name, [shows, waits], image=image, secrets={"token": PLANTED})


def holds(text: str, word: str = PLANTED) -> bool:
    return any(form in text for form in forms(word))


def files_with_it(folder: Path, word: str = PLANTED) -> list[Path]:
    """As `grep` finds them, in files of any kind."""
    words = [each for form in forms(word) for each in ("-e", form)]
    found = subprocess.run(
        ["grep", "--recursive", "--files-with-matches", "--text", *words, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode in (0, 1) or "No such file" in found.stderr, found.stderr
    return [Path(line) for line in found.stdout.splitlines()]


def rows_with_it(url: str, word: str = PLANTED) -> list[str]:
    """Of every table of a database."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    found = []
    with engine.connect() as connection:
        tables = inspect(engine).get_table_names()
        assert "jobs" in tables
        for table in tables:
            rows = connection.execute(text(f'SELECT * FROM "{table}"'))
            found += [f"{table}: {row}" for row in rows if holds(str(row), word)]
    engine.dispose()
    return found


def answers(ask: Ask, user: str, job: str, namespace: str, engine_name: str) -> dict[str, str]:
    """What every route of the server that answers at once says of this job, by path; of those that
    answer at all."""
    status, description = ask("/regatta/v1/openapi.json")
    assert status == 200
    values: dict[str, tuple[str, ...]] = {
        "framework": (f"{user}~{job}",),
        "username": (user,),
        "user": (user,),
        "name": (job, f"{user}~{job}", engine_name),
        "namespace": (namespace,),
        "attempt": ("0",),
        "role": (ROLE,),
        "index": ("0",),
        "life": ("0",),
    }
    found = {}
    for path in sorted(_readable(description)):
        if path.endswith("/watch"):
            continue  # without an end; it tells of jobs what their list does
        for filled in _filled(path, values):
            status, said = ask(filled)
            if status == 200:
                found[filled] = said
    for links in [path for path in found if path.endswith("/logs") and path.startswith("/api/")]:
        for uri in re.findall(r'"uri": *"([^"]+)"', found[links]):
            found[uri] = ask(urlsplit(uri).path)[1]
    return found


def _readable(description: str) -> Iterator[str]:
    paths: dict[str, Any] = json.loads(description)["paths"]
    return (path for path, operations in paths.items() if "get" in operations)


def _filled(path: str, values: dict[str, tuple[str, ...]]) -> Iterator[str]:
    wanted = re.findall(r"\{(\w+)\}", path)
    if not set(wanted) <= values.keys():
        return
    for chosen in product(*(values[name] for name in wanted)):
        yield path.format(**dict(zip(wanted, chosen, strict=True)))
