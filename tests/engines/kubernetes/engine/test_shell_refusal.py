"""What says something of its author's machine is refused by name, with what a cluster has."""

from __future__ import annotations

import pytest

from regatta.api.errors import ShellRefused
from regatta.engines.base import Shell
from regatta.engines.shell_refusal import refuse_shell

REFUSED = {
    "--python is about jobs on this machine; on a cluster the image brings the interpreter": Shell(
        python="/usr/bin/python3"
    ),
    "--volume is about jobs on this machine; on a cluster its volumes are those": Shell(
        volumes={"data": "/data"}
    ),
    "--workdir is about jobs on this machine; on a cluster the image, or workingDir": Shell(
        directory="/"
    ),
    "--runtime is about jobs on this machine; on a cluster the nodes have": Shell(runtime="docker"),
    "--no-gpu is about jobs on this machine; on a cluster take nvidia.com/gpu": Shell(no_gpu=True),
    "environment is about jobs on this machine; on a cluster variables are": Shell(
        environment={"PATH": "/bin"}
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_means_nothing_on_a_cluster_is_refused(sentence: str) -> None:
    with pytest.raises(ShellRefused) as refused:
        refuse_shell(REFUSED[sentence])

    assert sentence in str(refused.value)


def test_everything_is_named_at_once() -> None:
    with pytest.raises(ShellRefused) as refused:
        refuse_shell(Shell(python="/py", volumes={"data": "/data"}, runtime="podman"))

    assert [p.path for p in refused.value.problems] == ["--volume", "--python", "--runtime"]
    assert str(refused.value).startswith("--volume and --python and --runtime are about jobs on")


@pytest.mark.parametrize("shell", [None, Shell(), Shell(no_preflight=True)])
def test_a_shell_that_says_nothing_is_none(shell: Shell | None) -> None:
    refuse_shell(shell)
