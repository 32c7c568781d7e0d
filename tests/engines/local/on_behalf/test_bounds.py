"""Folders that a server allows, and rights that a container of a team's cannot have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regatta.engines.local.on_behalf.bounds import (
    not_for_a_runtime,
    why_not_allowed,
    widened_rights,
)
from regatta.engines.local.replicas.runspec import Mount


@pytest.mark.parametrize(
    ("path", "whole", "ok"),
    [
        ("/data", False, True),
        ("/data", True, True),
        ("/data/inner", False, True),
        ("/data/inner", True, False),
        ("/database", False, False),
        ("/", False, False),
        ("/dat", False, False),
    ],
)
def test_a_folder_is_allowed_by_name_or_with_what_it_holds(
    path: str, whole: bool, ok: bool
) -> None:
    assert (why_not_allowed(path, path, ("/data",), whole=whole) == "") is ok


def test_an_allowed_folder_may_be_a_link_itself(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    asked = str(tmp_path / "link")
    assert why_not_allowed(asked, str(tmp_path / "real"), (asked,)) == ""


def test_a_refusal_says_where_a_path_leads_and_what_is_allowed() -> None:
    why = why_not_allowed("/data/link", "/etc", ("/data", "/models"))
    assert why == (
        "/data/link, which leads to /etc, is not one of the folders that the server allows, nor "
        "in one: /data, /models"
    )
    assert why_not_allowed("/etc", "/etc", ()).endswith("its settings allow none")


@pytest.mark.parametrize("path", ["/a,source=/etc", '/a"b', "/a\nb"])
def test_a_path_cannot_say_more_to_a_runtime_than_a_path(path: str) -> None:
    for source, target in ((path, "/ok"), ("/ok", path)):
        found = list(not_for_a_runtime("c", "x", [Mount(source=source, target=target)], ()))
        assert [problem.path for problem in found] == ["c.volumeMounts"]
    assert list(not_for_a_runtime("c", "x", [Mount(source="/a b:c=d", target="/ok")], ())) == []


@pytest.mark.parametrize("image", ["dir:/root/image", "oci-archive:/data/x.tar", "sif:/x"])
def test_an_image_cannot_be_made_of_the_servers_files(image: str) -> None:
    assert [problem.path for problem in not_for_a_runtime("c", image, (), ())] == ["c.image"]
    for plain in ("paddle:2.6", "localhost:5000/dir:1", "docker://paddle", "direct:1"):
        assert list(not_for_a_runtime("c", plain, (), ())) == []


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "http_proxy", "DOCKER_HOST", "XDG_X"])
def test_a_secret_cannot_change_what_the_runtime_itself_does(name: str) -> None:
    """Its client runs with the server's rights, and has the variable to hand it on."""
    found = list(not_for_a_runtime("c", "x", (), [name, "GOOGLE_API_KEY", "LANGCHAIN_KEY"]))
    assert [problem.path for problem in found] == [f"c.env[{name}]"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hostNetwork": True}, "spec.hostNetwork"),
        ({"hostPID": True}, "spec.hostPID"),
        ({"hostIPC": True}, "spec.hostIPC"),
        (
            {"securityContext": {"sysctls": [{"name": "kernel.x", "value": "1"}]}},
            "spec.securityContext.sysctls",
        ),
        (
            {"containers": [{"securityContext": {"privileged": True}}]},
            "spec.containers[0].securityContext.privileged",
        ),
        (
            {"initContainers": [{}, {"securityContext": {"allowPrivilegeEscalation": True}}]},
            "spec.initContainers[1].securityContext.allowPrivilegeEscalation",
        ),
        (
            {"containers": [{"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]},
            "spec.containers[0].securityContext.capabilities.add",
        ),
        ({"containers": [{"volumeDevices": [{}]}]}, "spec.containers[0].volumeDevices"),
    ],
    ids=str,
)
def test_what_would_widen_rights_is_refused_by_field(spec: dict[str, Any], path: str) -> None:
    problems = list(widened_rights(spec))
    assert [problem.path for problem in problems] == [path]
    assert "Leave it out" in problems[0].message


def test_what_narrows_rights_is_let_be() -> None:
    narrow = {"privileged": False, "allowPrivilegeEscalation": False, "runAsNonRoot": True}
    spec = {
        "hostNetwork": False,
        "containers": [{"securityContext": {**narrow, "capabilities": {"drop": ["ALL"]}}}],
    }
    assert list(widened_rights(spec)) == []
