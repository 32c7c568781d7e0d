"""The reference pages name everything that there is, and link to nothing that is not."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from regatta.api import errors
from regatta.api.job import (
    CONDITION_TYPES,
    Completion,
    Job,
    JobSpec,
    Metadata,
    Mode,
    Phase,
    RoleSpec,
)
from regatta.cli.main import cli
from regatta.controller import environment
from regatta.controller.environment import Place

ROOT = Path(__file__).parents[1]
ERROR_CODES = {
    kind.code
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.RegattaError)
} - {errors.RegattaError.code}
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not any(part.startswith(".") for part in page.relative_to(ROOT).parts)
)


def the(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


@pytest.mark.parametrize("mode", [Mode.HETER, Mode.CUSTOM])
def test_every_variable_of_a_replica_is_explained(mode: Mode) -> None:
    page = the("environment.md")
    assert {name for name in _variables(mode) if f"`{name}`" not in page} == set()


def _variables(mode: Mode) -> set[str]:
    """With the names of tasks, replicas and ports as the page writes them."""
    role = RoleSpec(name="ROLE", replicas=1, template={}, completion=Completion())
    roles = ["ROLE"] if mode is Mode.CUSTOM else ["ps", "worker", "heter"]
    places = {name: [Place(role=name, index=0, spec=role, port=1, host="h")] for name in roles}
    spec = JobSpec(mode=mode, ps=role, worker=role, heter=role, with_gloo=1)
    job = Job(metadata=Metadata(name="j"), spec=spec)
    names = set(environment.shared(job, places))
    for (place,) in places.values():
        names |= {variable["name"] for variable in environment.own(job, place)}
    return {re.sub("_(http|ssh)(?=_|$)", "_LABEL", name.replace("_0", "_INDEX")) for name in names}


@pytest.mark.parametrize("word", [*CONDITION_TYPES, *map(str, Phase)])
def test_every_phase_and_condition_is_explained(word: str) -> None:
    assert f"`{word}`" in the("status.md")


def test_every_error_code_is_explained() -> None:
    page = the("rest.md")
    assert [code for code in sorted(ERROR_CODES) if f"`{code}`" not in page] == []


def test_every_verb_and_option_is_explained() -> None:
    context = click.Context(cli)
    pages = the("cli.md") + the("kubernetes/install.md")
    missing = []
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        assert command is not None
        if verb not in pages:
            missing.append(verb)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                names = (*parameter.opts, *parameter.secondary_opts)
                if not any(name in pages for name in names):
                    missing.append(f"{verb} {'/'.join(names)}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        if "://" in path or target.startswith("mailto:"):
            continue
        there = (page.parent / path) if path else page
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in _anchors(there)
        ):
            broken.append(target)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
