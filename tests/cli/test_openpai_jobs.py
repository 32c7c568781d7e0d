"""`regatta run` of OpenPAI's own files, with no server of a team's."""

from __future__ import annotations

import json
import pwd
from os import getuid
from pathlib import Path

from tests.doors import Regatta, a_regatta
from tests.openpai_configs import ODD_SAYS, hello, two_roles, version_two


def test_hello_world_runs_and_bash_gets_what_was_written(regatta: Regatta) -> None:
    said = regatta("run", regatta.write(hello("Hello_World"), "hello.json"))

    assert said.code == 0, said
    user = pwd.getpwuid(getuid()).pw_name
    for line in ODD_SAYS:
        assert f"default-0 | {line.format(user=user, job='Hello_World')}" in said.out
    assert "Completed" in said.out
    assert ODD_SAYS[1] in regatta("logs", "Hello_World").out


def test_two_roles_find_each_other(tmp_path: Path) -> None:
    with a_regatta(tmp_path) as regatta:
        regatta.environment["REGATTA_CPUS"] = "4"  # one each is the least that OpenPAI knows
        said = regatta("run", regatta.write(two_roles("Two_Roles"), "two.json"))

    assert said.code == 0, said
    for line in ("found 0", "found 1", "ps_server has 2", "Worker has 2"):
        assert said.out.count(f"| {line}\n") == 2, said


def test_a_config_is_checked_and_tried_without_running_it(regatta: Regatta) -> None:
    file = regatta.write(
        version_two("Tried", ["echo <% $secrets.x %>"], secrets={"x": "planted"}), "job.yaml"
    )

    valid = regatta("validate", file)
    tried = regatta("run", file, "--dry-run", "-o", "json")

    assert "valid, a Custom job of 1 replica" in valid.out
    (pod,) = json.loads(tried.out)["environment"]
    assert json.loads(tried.out)["environment"][pod]["REGATTA_SECRET_0"] == "******"
    assert "planted" not in tried.out + tried.err + valid.out + valid.err


def test_what_a_config_asks_for_in_vain_is_told_before_it_runs(regatta: Regatta) -> None:
    file = regatta.write(hello("Chosen", "true", gpuType="Tesla-V100"), "chosen.json")

    for command in (["validate", file], ["run", file]):
        said = regatta(*command)
        assert said.code == 0, said
        assert "gpuType: it chooses nothing on this machine" in said.out + said.err


def test_a_wrong_config_is_told_in_its_own_words(regatta: Regatta) -> None:
    file = regatta.write(hello("j").replace("taskNumber", "taskNumbr"), "bad.json")

    refused = regatta("run", file)

    assert refused.code == 2
    assert "taskRoles[0].taskNumbr: unknown field; did you mean taskNumber?" in refused.err
