"""`validate` says what `run` would, and starts nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.doors import Regatta, shell_job

WORKER = "spec.worker.template.spec"


def changed(**container: Any) -> str:
    document = yaml.safe_load(shell_job("demo"))
    pod = document["spec"]["worker"]["template"]["spec"]
    pod["volumes"] = container.pop("volumes", [])
    document["spec"]["worker"]["replicas"] = container.pop("replicas", 1)
    pod["containers"][0].update(container)
    return yaml.safe_dump(document)


def mounting(source: dict[str, Any], **mount: Any) -> str:
    return changed(
        volumes=[{"name": "data", **source}],
        volumeMounts=[{"name": "data", "mountPath": "/data", **mount}],
    )


REFUSED = {
    "only an image": (changed(command=None), [], "containers[0].command (line 11): missing"),
    "a misspelt command": (
        changed(comand=["true"], command=None, image=None), [], "did you mean command?"),
    "a way out of a volume": (mounting({"emptyDir": {}}, subPath=".."), [], "volumeMounts[0].subP"),
    "a volume that is nowhere": (
        mounting({"persistentVolumeClaim": {"claimName": "c"}}), [], "which folder claim 'c' mean"),
    "a command that is nowhere": (changed(command=["pyhton"]), [], "'pyhton' is not on the job's"),
    "a script that is not there": (changed(command=["sh", "x.sh"]), [], "script 'x.sh' is not in"),
    "more than the machine": (
        changed(resources={"requests": {"cpu": "5k"}}), [], "can never start on this machine"),
    "a folder that is not there": (shell_job("demo"), ["--workdir", "/nowhere"], "/nowhere is not"),
    "a runtime that is not there": (
        shell_job("demo"), ["--runtime", "podman"], "podman is not on the job's PATH"),
    "an option that cannot be": (shell_job("demo"), ["--set", "spec.x"], "--set spec.x: write pat"),
}  # fmt: skip


def problems(said: str) -> list[str]:
    """Without what is before them: `run` leads in with the first, `validate` lists it too."""
    found = [re.sub(r"^( +- |error: )", "", line) for line in said.splitlines()]
    return [line for line in found if re.search(r": |can never", line) and "problem" not in line]


@pytest.mark.parametrize(("text", "options", "told"), REFUSED.values(), ids=REFUSED)
def test_validate_says_what_run_would(
    regatta: Regatta, text: str, options: list[str], told: str, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(text)
    for program in ("sh", "env"):
        (tmp_path / program).symlink_to(f"/bin/{program}")

    def ask(verb: str) -> Any:
        return regatta(verb, str(tmp_path / "job.yaml"), *options, PATH=str(tmp_path))

    validated, ran = ask("validate"), ask("run")

    assert (validated.code, ran.code) == (2, 2)
    assert told in validated.err
    assert told in ran.err
    assert [line for line in problems(validated.err) if told in line] == [
        line for line in problems(ran.err) if told in line
    ]


def test_validate_asks_the_server_that_is_named(regatta: Regatta) -> None:
    assert regatta("server", "start").code == 0
    address, token = regatta.address.url, regatta.files.token()
    file = regatta.write(changed(command=["pyhton"]))
    said = regatta("validate", file, "--server", address, REGATTA_TOKEN=token)
    assert said.code == 2
    assert "'pyhton' is not on the job's PATH" in said.err
    assert regatta("validate", file, "--server", "http://127.0.0.1:1").code == 5


def test_for_a_cluster_it_asks_for_images_and_not_for_programs(fresh: Regatta) -> None:
    only_image = fresh.write(changed(command=None), "image.yaml")
    no_image = fresh.write(changed(image=None), "none.yaml")
    said = fresh("validate", "--engine", "kubernetes", only_image, no_image)
    assert said.code == 2
    assert said.out.startswith(f"{only_image}: valid")
    assert f"{WORKER}.containers[0].image: missing; a cluster runs images" in said.err
    here = fresh("validate", "--engine", "kubernetes", only_image, "--volume", "a=/b")
    assert "--volume is about jobs on this machine" in here.err


def test_a_check_that_is_not_wanted_is_left_out(regatta: Regatta) -> None:
    file = regatta.write(changed(command=["pyhton"]))
    refused = regatta("validate", file)
    assert "`--no-preflight` leaves them out" in refused.err
    assert regatta("validate", file, "--no-preflight").code == 0
