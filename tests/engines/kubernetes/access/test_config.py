"""Kubeconfig files and pods' own accounts: what a client is told, and what a person is."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from regatta.engines.kubernetes.access.config import load_access
from regatta.engines.kubernetes.access.config_errors import ConfigError
from regatta.engines.kubernetes.access.credentials import ConfiguredCredentials
from regatta.engines.kubernetes.access.fresh_file import FreshFile
from regatta.http.tls import ClientCertificate
from tests.engines.kubernetes.loops import in_a_loop


def a_kubeconfig(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": "https://lab.example:6443"}}],
        "users": [{"name": "ada", "user": {"token": "ada-token"}}],
        "contexts": [
            {"name": "lab", "context": {"cluster": "lab", "user": "ada", "namespace": "research"}}
        ],
        **changes,
    }


def written(path: Path, config: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def with_cluster(**fields: Any) -> dict[str, Any]:
    cluster = {"server": "https://lab.example:6443", **fields}
    return a_kubeconfig(clusters=[{"name": "lab", "cluster": cluster}])


def with_user(**fields: Any) -> dict[str, Any]:
    return a_kubeconfig(users=[{"name": "ada", "user": fields}])


@in_a_loop
async def test_a_kubeconfig_says_where_who_and_which_namespace(tmp_path: Path) -> None:
    access = load_access(written(tmp_path / "config", a_kubeconfig()), environment={})
    assert (access.server, access.namespace, access.context) == (
        "https://lab.example:6443",
        "research",
        "lab",
    )
    credential = await access.credentials.current()
    assert credential.headers == (("Authorization", "Bearer ada-token"),)


@in_a_loop
async def test_of_several_files_the_first_to_name_a_thing_wins(tmp_path: Path) -> None:
    first = written(
        tmp_path / "a" / "config",
        {
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "ada"}}],
            "users": None,
        },
    )
    second = written(tmp_path / "b" / "config", a_kubeconfig(**{"current-context": "other"}))
    missing = tmp_path / "c" / "config"
    access = load_access(environment={"KUBECONFIG": f"{missing}:{first}:{second}"})
    assert (access.context, access.namespace) == ("lab", "default")
    assert (await access.credentials.current()).headers[0][1] == "Bearer ada-token"


@in_a_loop
async def test_relative_paths_belong_to_the_file_that_holds_them(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text("from-the-file\n")
    (tmp_path / "b" / "ca.pem").write_text("an authority")
    (tmp_path / "b" / "me.crt").write_text("a certificate")
    (tmp_path / "b" / "me.key").write_text("a key")
    config = with_user(
        **{"tokenFile": "token", "client-certificate": "me.crt", "client-key": "me.key"}
    )
    config["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem"
    access = load_access(written(tmp_path / "b" / "config", config), environment={})
    credential = await access.credentials.current()
    assert credential.headers == (("Authorization", "Bearer from-the-file"),)
    assert credential.certificate == ClientCertificate(b"a certificate", b"a key")
    assert isinstance(access.trust.authority, FreshFile)
    assert access.trust.authority.read() == b"an authority"


@in_a_loop
async def test_inline_certificates_win_over_files(tmp_path: Path) -> None:
    config = with_user(
        **{
            "client-certificate": "/nowhere",
            "client-certificate-data": base64.b64encode(b"inline").decode(),
            "client-key-data": base64.b64encode(b"key").decode(),
        }
    )
    access = load_access(written(tmp_path / "config", config), environment={})
    assert (await access.credentials.current()).certificate == ClientCertificate(b"inline", b"key")


def test_a_cluster_may_name_its_certificate_and_its_proxy(tmp_path: Path) -> None:
    config = with_cluster(
        **{
            "tls-server-name": "kubernetes.default",
            "proxy-url": "socks5://127.0.0.1:1080",
            "insecure-skip-tls-verify": True,
        }
    )
    access = load_access(
        written(tmp_path / "config", config), environment={"HTTPS_PROXY": "http://other:3128"}
    )
    assert access.trust.server_name == "kubernetes.default"
    assert access.trust.insecure
    assert access.proxy == "socks5://127.0.0.1:1080"


@in_a_loop
async def test_a_user_may_act_as_another(tmp_path: Path) -> None:
    config = with_user(
        **{
            "token": "t",
            "as": "grace",
            "as-groups": ["navy", "compilers"],
            "as-uid": "7",
            "as-user-extra": {"reason": ["audit"]},
        }
    )
    access = load_access(written(tmp_path / "config", config), environment={})
    assert (await access.credentials.current()).headers == (
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "grace"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "navy"),
        ("Impersonate-Group", "compilers"),
        ("Impersonate-Extra-reason", "audit"),
    )


@pytest.mark.parametrize(
    ("config", "context", "said"),
    [
        pytest.param(
            a_kubeconfig(), "prod", "has no context 'prod'; it has lab", id="no such context"
        ),
        pytest.param(
            a_kubeconfig(**{"current-context": ""}),
            None,
            "sets no current-context; choose one",
            id="no current context",
        ),
        pytest.param(
            a_kubeconfig(clusters=[]),
            None,
            "names the cluster 'lab', which .* does not define; it has none",
            id="no such cluster",
        ),
        pytest.param(
            a_kubeconfig(users=[{"name": "bob", "user": {}}]),
            None,
            "names the user 'ada', which .* does not define; it has bob",
            id="no such user",
        ),
        pytest.param(
            with_cluster(server="lab.example"), None, "should be a URL such as", id="no URL"
        ),
        pytest.param(
            with_cluster(**{"proxy-url": "ftp://x"}),
            None,
            "proxy-url of cluster 'lab' is 'ftp://x'; it should be a URL that begins with http://",
            id="a proxy of no kind we know",
        ),
        pytest.param(
            with_user(**{"client-certificate-data": "aaaa"}),
            None,
            "has a client certificate but no client key; add client-key or client-key-data",
            id="half a pair",
        ),
        pytest.param(
            with_user(**{"auth-provider": {"name": "gcp"}}),
            None,
            "auth-provider 'gcp', which Kubernetes removed in 1.26",
            id="an old way to sign in",
        ),
        pytest.param(
            with_user(exec={"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}),
            None,
            "speaks 'client.authentication.k8s.io/v1alpha1'; Kubernetes has",
            id="an exec plugin of a version nobody serves",
        ),
        pytest.param(
            with_user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}),
            None,
            "must say its interactiveMode",
            id="a v1 exec plugin that does not say whether it talks",
        ),
        pytest.param(
            a_kubeconfig(clusters="lab"), None, "not as kubectl writes it", id="wrong types"
        ),
    ],
)
def test_a_broken_kubeconfig_is_explained(
    tmp_path: Path, config: dict[str, Any], context: str | None, said: str
) -> None:
    path = written(tmp_path / "config", config)
    with pytest.raises(ConfigError, match=said):
        load_access(path, context, environment={})


def test_no_kubeconfig_at_all_says_where_one_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"looked at {tmp_path}/.kube/config"):
        load_access(environment={"HOME": str(tmp_path)}, service_account=tmp_path / "none")


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("first")
    (folder / "ca.crt").write_text("the authority")
    (folder / "namespace").write_text("paddle-system\n")
    return folder


@in_a_loop
async def test_inside_a_pod_its_own_account_is_used(service_account: Path) -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "HOME": "/nowhere"}
    access = load_access(environment=inside, service_account=service_account, fresh_seconds=0)
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "paddle-system")
    assert (await access.credentials.current()).headers[0][1] == "Bearer first"
    (service_account / "token").write_text("second")
    assert (await access.credentials.current()).headers[0][1] == "Bearer second"


#: KUBECONFIG, whether ~/.kube/config says where, and whether the pod's own account is used: what
#: kubectl 1.36 does in each case was seen.
IN_A_POD = {
    "nothing else says where": ("", {}, True),
    "there is a file in the home folder": ("", a_kubeconfig(), False),
    "a file is named": ("named", {}, False),
    "a file that is not there is named": ("missing", a_kubeconfig(), True),
    "one of two is there": ("missing:named", {}, False),
    "the file in the home folder is empty": ("", None, True),
    "it has no current context": ("", a_kubeconfig(**{"current-context": ""}), True),
}


@pytest.mark.parametrize("what", IN_A_POD)
def test_a_kubeconfig_that_says_where_wins_over_the_pods_account_as_with_kubectl(
    tmp_path: Path, service_account: Path, what: str
) -> None:
    named, at_home, own = IN_A_POD[what]
    written(tmp_path / "named", a_kubeconfig())
    home = tmp_path / ".kube" / "config"
    if at_home != {}:
        written(home, at_home or {})
    listed = ":".join(str(tmp_path / name) for name in named.split(":") if name)
    inside = {
        "KUBERNETES_SERVICE_HOST": "198.18.0.1",
        "KUBECONFIG": listed,
        "HOME": str(tmp_path),
    }
    access = load_access(environment=inside, service_account=service_account)
    file = tmp_path / "named" if named else home
    how = f"this pod's own account ({service_account})" if own else f"context lab of {file}"
    assert access.how == how


def test_a_context_is_looked_for_in_files_alone(tmp_path: Path, service_account: Path) -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "198.18.0.1", "HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match="there is no kubeconfig"):
        load_access(None, "lab", environment=inside, service_account=service_account)
    with pytest.raises(ConfigError, match="there is no kubeconfig at"):
        load_access(tmp_path / "no", environment=inside, service_account=service_account)


@in_a_loop
async def test_a_token_file_is_read_again_after_a_minute_and_after_a_refusal(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    now = [0.0]
    token_file = FreshFile(file, max_age=60, clock=lambda: now[0])
    credentials = ConfiguredCredentials(token_file=token_file)

    async def shown() -> str:
        return (await credentials.current()).headers[0][1]

    assert await shown() == "Bearer first"
    file.write_text("second")
    now[0] = 59
    assert await shown() == "Bearer first"
    now[0] = 60
    assert await shown() == "Bearer second"
    file.write_text("third")
    assert credentials.refused()
    assert await shown() == "Bearer third"
    file.unlink()
    now[0] = 180
    assert await shown() == "Bearer third"  # The last one that could be read.
