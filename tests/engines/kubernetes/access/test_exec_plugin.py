"""Exec plugins: real programs, asked as kubectl asks them."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.access.config_errors import ConfigError
from regatta.engines.kubernetes.access.credentials import Credentials
from regatta.engines.kubernetes.access.exec_plugin import ExecCredentials, ExecSpec
from regatta.http.tls import ClientCertificate
from tests.engines.kubernetes.access.test_config import with_user, written
from tests.engines.kubernetes.loops import in_a_loop

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def a_plugin(folder: Path, body: str) -> Path:
    path = folder / "sign-in"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def printing(version: str = V1, **status: Any) -> str:
    text = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return f"cat <<'END'\n{text}\nEND"


def credentials_of(folder: Path, body: str, version: str = V1, **fields: Any) -> Credentials:
    a_plugin(folder, body)
    block = {"apiVersion": version, "command": "./sign-in", "interactiveMode": "Never", **fields}
    return load_access(
        written(folder / "config", with_user(exec=block)), environment={}
    ).credentials


def at(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize("version", [V1, V1BETA1])
@in_a_loop
async def test_a_plugins_token_is_shown(tmp_path: Path, version: str) -> None:
    credentials = credentials_of(tmp_path, printing(version, token="fresh"), version)
    assert (await credentials.current()).headers == (("Authorization", "Bearer fresh"),)


@in_a_loop
async def test_a_plugin_may_give_a_client_certificate(tmp_path: Path) -> None:
    body = printing(clientCertificateData="certificate", clientKeyData="key")
    credential = await credentials_of(tmp_path, body).current()
    assert credential.certificate == ClientCertificate(b"certificate", b"key")
    assert credential.headers == ()


@in_a_loop
async def test_a_plugin_gets_its_arguments_its_variables_and_the_cluster(tmp_path: Path) -> None:
    body = f"""
    printf '%s|%s|%s' "$1" "$REGION" "$KUBERNETES_EXEC_INFO" > {tmp_path}/told
    {printing(token="t")}
    """
    credentials = credentials_of(
        tmp_path,
        body,
        args=["--cluster=lab"],
        env=[{"name": "REGION", "value": "north"}],
        provideClusterInfo=True,
    )
    await credentials.current()
    argument, region, info = (tmp_path / "told").read_text().split("|")
    assert (argument, region) == ("--cluster=lab", "north")
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://lab.example:6443"}},
    }


@in_a_loop
async def test_a_credential_is_kept_until_shortly_before_it_expires(tmp_path: Path) -> None:
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    now = [begin]
    runs = tmp_path / "runs"
    body = f"echo run >> {runs}\n" + printing(
        token="t", expirationTimestamp=at(begin + timedelta(hours=1))
    )
    spec = ExecSpec(user="ada", api_version=V1, command=str(a_plugin(tmp_path, body)))
    credentials = ExecCredentials(spec, clock=lambda: now[0], is_terminal=lambda: False)

    async def times_run() -> int:
        await asyncio.gather(*(credentials.current() for _ in range(5)))
        return len(runs.read_text().splitlines())

    assert await times_run() == 1
    now[0] = begin + timedelta(minutes=59)
    assert await times_run() == 1
    now[0] = begin + timedelta(minutes=59, seconds=55)
    assert await times_run() == 2
    assert credentials.refused()
    assert await times_run() == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param("echo please sign in >&2; exit 3", "exit code 3: please sign in", id="fails"),
        pytest.param("echo hello", "printed something else than an ExecCredential", id="chatters"),
        pytest.param(printing(V1BETA1, token="t"), "answered in apiVersion", id="other version"),
        pytest.param(printing(), "neither a token nor a client certificate", id="gives nothing"),
        pytest.param(printing(clientKeyData="k"), "only one of", id="gives half a pair"),
        pytest.param(
            printing(token="t", expirationTimestamp="2001-01-01T00:00:00Z"),
            "gave a credential that expired at 2001-01-01",
            id="gives what has expired",
        ),
        pytest.param(printing(token="two\nlines"), "characters that no token has", id="no token"),
    ],
)
@in_a_loop
async def test_a_plugin_that_does_not_help_is_named(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"'sign-in' of user 'ada'|{said}") as raised:
        await credentials_of(tmp_path, body).current()
    assert said in str(raised.value)


@in_a_loop
async def test_a_missing_plugin_comes_with_its_own_advice(tmp_path: Path) -> None:
    spec = ExecSpec(
        user="ada", api_version=V1, command="/nowhere/aws", install_hint="Install it with brew."
    )
    with pytest.raises(ConfigError, match=r"'aws' of user 'ada' cannot be run(.|\n)*with brew"):
        await ExecCredentials(spec, is_terminal=lambda: False).current()


@in_a_loop
async def test_a_plugin_that_needs_a_person_says_so_where_there_is_none(tmp_path: Path) -> None:
    spec = ExecSpec(user="ada", api_version=V1, command="true", interactive_mode="Always")
    with pytest.raises(ConfigError, match="needs a person at a terminal"):
        await ExecCredentials(spec, is_terminal=lambda: False).current()
