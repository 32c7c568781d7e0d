"""The command line that runs an image."""

from __future__ import annotations

from regatta.engines.local.replicas.containers import container_name, remove_argv, run_argv
from regatta.engines.local.replicas.runspec import Mount


def test_an_image_with_its_own_program_gets_only_the_arguments() -> None:
    argv = run_argv("podman", name="n", image="i", env={}, args=["--epochs", "2"])
    assert argv == (
        "podman", "run", "--rm", "--network", "host", "--name", "n", "i", "--epochs", "2",
    )  # fmt: skip


def test_a_command_replaces_the_images_program() -> None:
    argv = run_argv("docker", name="n", image="i", env={}, command=["python", "-u"], args=["x.py"])
    assert argv[-5:] == ("--entrypoint", "python", "i", "-u", "x.py")


def test_variables_and_mounts_are_passed_on() -> None:
    mounts = [
        Mount(source="/a:b", target="/data", read_only=True),
        Mount(source="/out", target="/out"),
    ]
    argv = run_argv("docker", name="n", image="i", env={"A": "x=y z"}, mounts=mounts)
    assert argv[7:-1] == (
        "--env", "A=x=y z",
        "--mount", "type=bind,source=/a:b,target=/data,readonly",
        "--mount", "type=bind,source=/out,target=/out",
    )  # fmt: skip


def test_each_runtime_has_its_own_word_for_gpus() -> None:
    docker = run_argv("docker", name="n", image="i", env={}, gpus=["0", "3"])
    podman = run_argv("podman", name="n", image="i", env={}, gpus=["0", "3"])
    assert docker[7:-1] == ("--gpus", '"device=0,3"')
    assert podman[7:-1] == ("--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=3")


def test_a_container_is_found_again_by_its_run() -> None:
    name = container_name("uid/2", "main")
    assert name == "regatta-uid-2-main"
    assert remove_argv("docker", name) == ("docker", "rm", "--force", name)
