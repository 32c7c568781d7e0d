"""Secrets reach the process that needs them, whatever they are made of, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regatta.api.errors import InvalidConfig
from regatta.api.openpai.wanted import Registry
from tests.api.openpai.configs import container, converted, v1, v2, warnings, words

VALUES = {
    "an ampersand": "a&b\\&c",
    "quotes": 'it\'s "so"',
    "shell signs": "$HOME $(id) `id` ; | > * ? [a] {b} ~ ! #",
    "backslashes": "\\ \\\\ \\n",
    "a placeholder": "<% $secrets.b %>",
    "its own placeholder": "<% $secrets.a %>",
    "lines": "one\ntwo\n",
    "spaces": "  a  b\t",
    "nothing": "",
    "all tongues": "grüße 你好 🚣",
    "a pattern": "%%*#?[!x]",
}


def run(config: dict[str, Any], **env: str) -> tuple[int, str, str]:
    """The built command, with the variables that its container has."""
    made = converted(config)
    given_env = {"PATH": os.environ["PATH"], **env}
    for variable in container(config)["env"]:
        if "valueFrom" in variable:
            given_env[variable["name"]] = made.secrets[variable["valueFrom"]["secretKeyRef"]["key"]]
    done = subprocess.run(words(config), capture_output=True, env=given_env)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("value", VALUES.values(), ids=list(VALUES))
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_value_arrives_character_by_character(value: str, locale: str) -> None:
    script = "cat <<'END'\n[<% $secrets.a %>]<%$secrets.b%>[<% $secrets.a %>]\nEND"
    config = v2(script, secrets={"a": value, "b": "B&"})
    assert run(config, LC_ALL=locale) == (0, f"[{value}]B&[{value}]\n", "")


def test_a_value_is_put_in_before_bash_reads_the_script() -> None:
    config = v2("<% $secrets.command %> 'and more'", secrets={"command": "echo one; echo two"})
    assert run(config) == (0, "one\ntwo and more\n", "")


def test_a_cluster_keeps_no_last_lines_of_a_task_that_has_one() -> None:
    with_secret = container(v2("echo <% $secrets.a %>", secrets={"a": "x"}))
    without = container(v2("echo", secrets={"a": "x"}))
    assert with_secret["terminationMessagePolicy"] == "File"
    assert "terminationMessagePolicy" not in without


SCRIPTS = {
    "its exit status": ("echo <% $secrets.a %>; exit 7", 7, "A\n"),
    "errexit": ("echo <% $secrets.a %>\nfalse\necho never", 1, "A\n"),
    "errexit of the last command": ("echo <% $secrets.a %>\nfalse", 1, "A\n"),
    "pipefail": ("echo <% $secrets.a %>\nfalse | true\necho never", 1, "A\n"),
    "nounset": ("echo <% $secrets.a %>\necho $nobody_set_this", 1, "A\n"),
    "a here document": ("cat <<END\n$((1 + 1)) <% $secrets.a %>\nEND\necho on", 0, "2 A\non\n"),
    "a comment first": ("# <% $secrets.a %>\necho on", 0, "on\n"),
    "its own arguments": ('echo "$0" "$#" <% $secrets.a %>', 0, "bash 0 A\n"),
    "line numbers": ("true\n# <% $secrets.a %>\necho $LINENO", 0, "3\n"),
    "its options": ("echo $- <% $secrets.a %>", 0, "ehuBc A\n"),
    "a function and a loop": (
        "f() {\n  for i in 1 2; do echo $i <% $secrets.a %>; done\n}\nf",
        0,
        "1 A\n2 A\n",
    ),
}


@pytest.mark.parametrize(("script", "status", "out"), SCRIPTS.values(), ids=list(SCRIPTS))
def test_a_script_with_secrets_runs_as_any_other(script: str, status: int, out: str) -> None:
    config = v2(script, secrets={"a": "A"})
    found = run(config)
    assert found[:2] == (status, out)
    plain = words(v2(script.replace("<% $secrets.a %>", "A")))
    without = subprocess.run(plain, capture_output=True, env={"PATH": os.environ["PATH"]})
    assert (without.returncode, without.stdout.decode()) == (status, out)


def test_nothing_of_ours_is_left_for_the_script_to_see() -> None:
    config = v2("# <% $secrets.a %>", "env", "set -o posix", "set", secrets={"a": "hidden value"})
    status, out, _ = run(config)
    assert status == 0
    assert "regatta" not in out.lower().replace(os.environ["PATH"].lower(), "")
    assert "PATH=" in out
    assert "hidden value" not in out


def test_the_command_line_shows_placeholders_only() -> None:
    config = v2(
        "tr '\\0' '\\n' < /proc/$$/cmdline; : <% $secrets.token %>",
        secrets={"token": "PLANTED-IN-HERE"},
    )
    status, out, _ = run(config)
    assert status == 0
    assert "<% $secrets.token %>" in out
    assert "PLANTED" not in out


def test_what_a_parameter_says_is_no_reference() -> None:
    config = v2(
        "echo '<% $parameters.p %>' '<% $secrets.a %>'",
        parameters={"p": "<% $secrets.a %>"},
        secrets={"a": "A"},
    )
    assert run(config) == (0, "<% $secrets.a %> A\n", "")


def test_a_role_has_the_secrets_that_it_uses_and_no_others() -> None:
    config = v2(
        "echo <% $secrets.deep.b[1] %> <%$secrets.a%> <% $secrets.a %>",
        secrets={"a": "A", "deep": {"b": ["x", "y"]}, "other": "O"},
    )
    made = converted(config)
    assert made.secrets == {"deep.b.1": "y", "a": "A"}
    named = [variable for variable in container(config)["env"] if "valueFrom" in variable]
    assert named == [
        {
            "name": f"REGATTA_SECRET_{i}",
            "valueFrom": {"secretKeyRef": {"name": "job-secrets", "key": key}},
        }
        for i, key in enumerate(["deep.b.1", "a"])
    ]
    assert run(config)[1] == "y A A\n"


def test_secrets_of_deployments_and_plugins_are_filled_in_too() -> None:
    config = v2(
        "echo middle",
        secrets={"a": "A", "b": "B"},
        deployments=[
            {"name": "d", "taskRoles": {"main": {"preCommands": ["echo <% $secrets.a %>"]}}}
        ],
        defaults={"deployment": "d"},
        extras={
            "com.microsoft.pai.runtimeplugin": [
                {"plugin": "cmd", "parameters": {"postCommands": ["echo <% $secrets.b %>"]}}
            ]
        },
    )
    assert run(config) == (0, "A\nmiddle\nB\n", "")


def test_numbers_and_flags_are_text_and_their_author_is_told() -> None:
    config = v2("echo <% $secrets.n %> <% $secrets.f %>", secrets={"n": 83, "f": True})
    assert converted(config).secrets == {"n": "83", "f": "true"}
    assert list(warnings(config)) == ["secrets.n", "secrets.f"]
    assert {problem.severity for problem in converted(config).warnings} == {"warning"}
    assert "83" not in str(warnings(config))


def test_who_we_are_to_a_registry_is_told_beside_the_job() -> None:
    auth = {"username": "robot", "password": "<% $secrets.pull %>", "registryuri": "r.example"}
    config = v2(image={"auth": auth}, secrets={"pull": "PLANTED"})
    made = converted(config)
    assert made.registries == (
        Registry(registry="r.example", username="robot", password="PLANTED"),
    )
    assert made.secrets == {}
    pod = made.document["spec"]["tasks"][0]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "job-registry"}]
    assert made.config["prerequisites"][0]["auth"] == auth
    assert "PLANTED" not in repr(made) + repr(made.registries)


def test_a_password_in_plain_text_is_masked_and_the_docker_hub_is_meant() -> None:
    made = converted(v2(image={"auth": {"username": "ada", "password": "PLANTED"}}))
    assert made.registries[0].registry == "https://index.docker.io/v1/"
    assert made.registries[0].password == "PLANTED"
    assert made.config["prerequisites"][0]["auth"] == {"username": "ada", "password": "******"}


@pytest.mark.parametrize(
    ("auth", "entry"),
    [
        ({"username": "ada"}, ("ada", "")),
        ({"password": "x"}, ("", "x")),
        ({"username": "<% $parameters.u %>", "password": "a<% $secrets.s %>"}, ("ada", "aS")),
    ],
)
def test_a_registry_may_ask_for_a_name_or_a_password(
    auth: dict[str, str], entry: tuple[str, str]
) -> None:
    config = v2(image={"auth": auth}, secrets={"s": "S"}, parameters={"u": "ada"})
    made = converted(config)
    assert [(each.username, each.password) for each in made.registries] == [entry]
    kept = made.config["prerequisites"][0]["auth"].get("password", "******")
    assert kept == "******"


def test_a_secret_may_be_as_long_as_a_variable_and_no_longer() -> None:
    def config(size: int) -> dict[str, Any]:
        return v2("echo <% $secrets.s %> | wc -c", secrets={"s": "x" * size})

    longest = 128 * 1024 - 64
    assert run(config(longest))[1].strip() == str(longest + 1)
    with pytest.raises(InvalidConfig, match=r"^secrets\.s: it is longer than"):
        converted(config(128 * 1024 - len("REGATTA_SECRET_0=")))


def test_a_name_that_no_secret_can_have_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="a secret's name has"):
        converted(v2("echo <% $secrets.ключ %>", secrets={"ключ": "x"}))


def test_text_is_as_it_should_be_and_not_worth_a_word() -> None:
    assert warnings(v2("echo <% $secrets.a[0] %>", secrets={"a": ["text"]})) == {}


def test_an_image_whose_registry_asks_nothing_needs_no_secret() -> None:
    made = converted(v2(image={"auth": {"registryuri": "r.example"}}))
    assert made.registries == ()
    assert "imagePullSecrets" not in json.dumps(made.document)


def test_a_v1_command_has_no_secrets() -> None:
    made = converted(v1("echo '<% $secrets.a %>'"))
    assert made.secrets == {}
    assert words(v1("echo '<% $secrets.a %>'"))[4] == "echo '<% $secrets.a %>'"


PLACES = {
    "a command": lambda value: v2("echo <% $secrets.s %>", secrets={"s": value}),
    "nobody": lambda value: v2(secrets={"s": value}),
    "a nested one": lambda value: v2("echo <% $secrets.a.s %>", secrets={"a": {"s": value}}),
    "a registry": lambda value: v2(
        image={"auth": {"username": "a", "password": "<% $secrets.s %>"}}, secrets={"s": value}
    ),
    "a user of a registry": lambda value: v2(
        image={"auth": {"username": "<% $secrets.s %>", "password": "x"}}, secrets={"s": value}
    ),
    "a plain password": lambda value: v2(image={"auth": {"username": "a", "password": value}}),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=list(PLACES))
@given(value=st.text(st.characters(exclude_categories=["C"]), min_size=12, max_size=40))
@settings(max_examples=30, deadline=None)
def test_no_value_is_ever_in_what_is_kept_or_told(place: Any, value: str) -> None:
    value = f"PLANTED{value}"
    made = converted(place(value))
    kept = [made.document, made.config, made.extras, made.marks, list(map(str, made.warnings))]
    assert "PLANTED" not in json.dumps(kept) + repr(made)
    assert ("secrets" not in made.config) or made.config["secrets"] == "******"


@pytest.mark.parametrize(
    "config",
    [
        v2("echo <% $secrets.other %>", secrets={"s": "PLANTED"}),
        v2(secrets="PLANTED"),
        v2(secrets=["PLANTED"]),
        v2("echo <% $secrets.s %>", secrets={"s": {"PLANTED": "PLANTED"}}),
        v2("echo <% $secrets.s %>", secrets={"s": "PLANTED" * 30_000}),
        v2(image={"auth": {"username": "a", "password": ["PLANTED"]}}),
        v2(image={"auth": {"username": "a", "password": "PLANTED", "x": 1}}),
    ],
)
def test_no_value_is_in_a_message_either(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        converted(config)
    assert "PLANTED" not in str(caught.value)
