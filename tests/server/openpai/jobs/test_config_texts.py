"""A config on record is JSON, and YAML for whoever wants it."""

from __future__ import annotations

import json

import yaml

from regatta.server.openpai.jobs import config_texts
from regatta.server.openpai.jobs.config_texts import in_v2s_yaml, in_yaml
from regatta.server.records.job_rows import document_of, job_of
from tests.openpai_configs import hello, version_two
from tests.server.openpai.jobs_of_openpai import submit
from tests.server.team.serving import TeamServer

ODD = {"yes": "no", "text": "a: b\n# c\n", "empty": "", "zero": "007", "day": "2026-11-18"}


def test_what_yaml_says_is_what_was_sent() -> None:
    config = {**ODD, "letters": "ünïcode 火 😀", "list": [1, 2.5, None, True], "map": {"a": {}}}
    written = json.dumps(config)
    assert yaml.safe_load(in_yaml(written)) == config
    assert list(yaml.safe_load(in_yaml(written))) == list(config)
    assert in_v2s_yaml(written, 2) == in_yaml(written)


def test_a_v1_config_is_a_v2_one_to_v2() -> None:
    shown = yaml.safe_load(in_v2s_yaml(hello("old", "true"), 1))
    assert (shown["protocolVersion"], shown["name"]) == (2, "old")


def test_libyaml_writes_it() -> None:
    """The pure one takes a second for what a long config has."""
    assert config_texts._Dumper is getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def test_what_is_on_record_is_answered_as_it_stands(shared: TeamServer) -> None:
    ann = shared.token("ann")
    submit(shared, ann, version_two("kept", ["true"]))
    row = shared.database.read_here(job_of, "ann", "kept")
    written = shared.database.read_here(document_of, row.id, "config")
    answer = shared.ask("GET", "/api/v1/user/ann/jobs/kept/config", ann)
    assert (answer.body.decode(), answer.headers.get_content_type()) == (
        written,
        "application/json",
    )
    assert answer.json["protocolVersion"] == 2
