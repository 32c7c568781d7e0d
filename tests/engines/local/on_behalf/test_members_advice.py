"""Advice to members of a team names nothing that the team's server refuses."""

from __future__ import annotations

import dataclasses

import pytest

from regatta.engines.base import RunAs, Shell
from regatta.engines.local.on_behalf.members_advice import AT_HOME, Advice, advice_for

REFUSED = ("--workdir", "--python", "--volume", "--runtime", "--no-gpu", "REGATTA_", "server stop")
SERVERS = {
    "users": Shell(run_as=RunAs(uid=1, gid=1, name="ann", home="/")),
    "container": Shell(folders=()),
    "none": Shell(images={}),
}


def _all_of(advice: Advice) -> str:
    texts = [str(getattr(advice, field.name)) for field in dataclasses.fields(advice)]
    return " ".join([*texts, advice.volume("data"), advice.more_cpus(3000), advice.more_pods(9)])


@pytest.mark.parametrize("kind", SERVERS)
def test_members_are_told_of_nothing_that_their_server_refuses(kind: str) -> None:
    said = _all_of(advice_for(SERVERS[kind]))
    assert [word for word in REFUSED if word in said] == []
    assert "workingDir or as a hostPath volume" in said


def test_what_is_said_to_help_is_enough() -> None:
    assert "`REGATTA_CPUS=3 regatta server restart`" in AT_HOME.more_cpus(2500)
    both = AT_HOME.more_cpus(8000, (48 << 30) - 1)
    assert "`REGATTA_CPUS=8 REGATTA_MEMORY=48Gi regatta server restart`" in both


def test_whoever_sits_at_the_machine_is_told_of_its_options() -> None:
    assert advice_for(Shell(directory="/somewhere", python="python")) is AT_HOME
    assert [word for word in REFUSED if word not in _all_of(AT_HOME)] == []
