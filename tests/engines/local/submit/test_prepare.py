"""The checks of a submission that need no engine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from regatta.api.errors import InvalidJob, NeverFits, PreflightFailed, RegattaError
from regatta.engines.base import Shell, Submission
from regatta.engines.local.submit.prepare import check_here
from tests.api.builders import a_job
from tests.api.openpai.configs import v1, v2
from tests.doors import shell_job

NUL = {
    "shell.environment.HOME": Shell(environment={"HOME": "a\0b"}),
    "shell.directory": Shell(directory="/\0"),
    "shell.python": Shell(python="py\0thon"),
    "shell.volumes.data": Shell(volumes={"data": "/\0"}),
}


@pytest.mark.parametrize("place", NUL)
def test_a_shell_that_no_process_could_have_is_refused_with_its_place(place: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        check_here(Submission(text=shell_job("demo")), NUL[place])
    (problem,) = refused.value.problems
    assert (problem.path, "NUL character" in problem.message) == (place, True)


def test_a_check_starts_nothing_and_needs_no_state(tmp_path: Path) -> None:
    shell = Shell(directory=str(tmp_path), environment={"PATH": os.environ["PATH"]})
    checked = check_here(Submission(text=shell_job("demo", "touch started")), shell)
    assert checked.job.name == "demo"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("python", ["/nope", "./nope", "no-such-python"])
def test_an_interpreter_that_is_not_there_is_refused_whoever_would_run_it(python: str) -> None:
    shell = Shell(python=python, environment={"PATH": os.environ["PATH"]})
    with pytest.raises(PreflightFailed) as refused:
        check_here(Submission(text=shell_job("demo", "python train.py")), shell)
    (problem,) = refused.value.problems
    assert problem.message.startswith(f"--python {python}: there is no such program")


def warned(config: dict[str, Any], **shell: Any) -> list[str]:
    """The fields at which a submission of one of OpenPAI's configs is warned."""
    submission = Submission(text=json.dumps(config), user="ada")
    place = Shell(environment={"PATH": os.environ["PATH"]}, no_preflight=True, **shell)
    return [problem.path for problem in check_here(submission, place).warnings]


AUTH = {"auth": {"username": "ada", "password": "x"}}
SHM = {"extraContainerOptions": {"shmMB": 80}}
SECOND = {"name": "second", "command": "true"}
IGNORED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a kind of GPU, once for all roles": (
        {**v1(gpuType="Tesla-V100"), "taskRoles": [v1()["taskRoles"][0], SECOND]}, ["gpuType"]),
    "v1's shared memory": (v1(role={"shmMB": 80}), ["taskRoles[0].shmMB"]),
    "v2's shared memory": (v2(role=SHM), ["taskRoles.main.extraContainerOptions.shmMB"]),
    "who one is to a registry": (v2(image=AUTH), ["prerequisites[0].auth"]),
    "v1's virtual cluster": (v1(virtualCluster="vc"), ["virtualCluster"]),
    "v2's virtual cluster": (
        v2(defaults={"virtualCluster": "vc"}), ["defaults.virtualCluster"]),
    "nothing of what v1 does not say": (v1(), []),
    "nothing of what v2 does not say": (v2(), []),
    "nothing of what is said to be nothing": (
        v2(role={"extraContainerOptions": {"shmMB": None}}), []),
}  # fmt: skip


@pytest.mark.parametrize(("config", "fields"), IGNORED.values(), ids=IGNORED)
def test_what_a_config_asks_for_and_is_not_done_here_is_told_at_its_field(
    config: dict[str, Any], fields: list[str]
) -> None:
    assert warned(config) == fields


def test_a_member_of_a_team_is_not_told_of_what_the_server_does(tmp_path: Path) -> None:
    """Its virtual clusters say who may use it."""
    shared = {"directory": str(tmp_path), "folders": ()}
    config = v1(virtualCluster="vc", gpuType="Tesla-V100", role={"shmMB": 80})
    assert warned(config, **shared) == ["gpuType", "taskRoles[0].shmMB"]


def test_a_paddle_job_gets_no_warning_for_what_has_no_meaning_here() -> None:
    """Its notes in a dry run have it."""
    text = a_job().pod(nodeSelector={"gpu": "a100"}).text()
    place = Shell(environment={"PATH": os.environ["PATH"]}, no_preflight=True)
    assert check_here(Submission(text=text), place).warnings == ()


def told(
    job: a_job, folder: Path, commands: Mapping[str, str] = {}, **shell: Any
) -> tuple[type[Exception], list[str]]:
    """The kind of the refusal, and the problems that came with it."""
    environment = {"PATH": os.environ["PATH"]}
    with pytest.raises(RegattaError) as refused:
        check_here(
            Submission(text=job.text(), commands=dict(commands)),
            Shell(directory=str(folder), environment=environment, **shell),
        )
    return type(refused.value), [str(problem) for problem in refused.value.problems]


def begin_as(sentences: list[str], beginnings: list[str]) -> bool:
    return len(sentences) == len(beginnings) and all(map(str.startswith, sentences, beginnings))


MISTAKEN = {"memory": {"limits": {"memory": "900Ti"}}, "wrong": {"limits": {"cpu": "1x"}}}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}
MOUNT = [{"name": "data", "mountPath": "/data"}]
POD = "template.spec"
TOGETHER: dict[str, tuple[a_job, type[Exception], list[str]]] = {
    "the size and a script": (
        a_job().with_container(resources=MISTAKEN["memory"]), NeverFits,
        ["worker: the script 'train.py' is not in"]),
    "a volume, a script and the size": (
        a_job().with_container(volumeMounts=MOUNT, resources=MISTAKEN["memory"])
        .pod(volumes=[CLAIM]),
        InvalidJob,
        [f"spec.worker.{POD}.volumes[0].persistentVolumeClaim.claimName (line 24): nothing",
         "it can never start on this machine: it needs ",
         "worker: the script 'train.py' is not in"]),
    "a role without a command and another's script": (
        a_job().with_ps(1, image="x", command=[]), InvalidJob,
        [f"spec.ps.{POD}.containers[0].command (line 21): missing",
         "worker: the script 'train.py' is not in"]),
    "what the file says and a script": (
        a_job().spec(withGloo=7).workers("two"), InvalidJob,
        ['spec.worker.replicas (line 7): found "two"', "spec.withGloo (line 15): found 7",
         "worker: the script 'train.py' is not in"]),
    "a field that is unknown, a name, a quantity and a program": (
        a_job("Demo").running("no-such-program").spec(wroker=1).with_container(
            resources=MISTAKEN["wrong"]),
        InvalidJob,
        ["metadata.name (line 4)", f"spec.worker.{POD}.containers[0].resources.limits.cpu (line",
         "spec.wroker (line", "worker: the command 'no-such-program' is not on"]),
    "an option and a script": (
        a_job(), InvalidJob,
        ["--volume nope=/tmp: no template has", "worker: the script 'train.py' is not in"]),
}  # fmt: skip


@pytest.mark.parametrize("case", TOGETHER)
def test_what_the_file_says_and_what_the_machine_lacks_are_told_together(
    case: str, tmp_path: Path
) -> None:
    job, kind, beginnings = TOGETHER[case]
    volumes = {"nope": "/tmp"} if case == "an option and a script" else {}
    raised, sentences = told(job, tmp_path, volumes=volumes)
    assert raised is kind
    assert begin_as(sentences, beginnings), sentences


ONCE: dict[str, tuple[a_job, str]] = {
    "a command that is no list": (
        a_job().with_container(image="x", command="python train.py"), ".command (line"),
    "a word of a command that is no text": (
        a_job().with_container(image="x", command=["python", 5]), ".command[1] (line"),
    "a folder that is not there": (
        a_job().with_container(workingDir="gone"), ".workingDir (line 15): "),
    "a program in a folder that is not there": (
        a_job().running("./train").with_container(workingDir="gone"), ".workingDir (line 14): "),
    "a script in a volume that cannot be had": (
        a_job().running("python", "/data/t.py").with_container(volumeMounts=MOUNT).pod(
            volumes=[CLAIM]), ".claimName (line 21): "),
    "a mount of no volume": (
        a_job().running("python", "/data/t.py").with_container(volumeMounts=MOUNT),
        ".volumeMounts[0].name (line"),
    "a role that is misspelt": (a_job().misspelling("worker", "wroker"), "spec.wroker (line"),
}  # fmt: skip


@pytest.mark.parametrize("case", ONCE)
def test_what_only_follows_from_a_mistake_is_not_told_beside_it(case: str, tmp_path: Path) -> None:
    job, place = ONCE[case]
    raised, sentences = told(job, tmp_path)
    assert raised is InvalidJob
    assert len(sentences) == 1, sentences
    assert place in sentences[0]


def test_beside_a_faulty_companion_the_machine_is_looked_at_as_well(tmp_path: Path) -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": "x",
    }
    with pytest.raises(InvalidJob) as refused:
        check_here(Submission(text=a_job().text(volume)), Shell(directory=str(tmp_path)))
    assert [problem.path for problem in refused.value.problems] == [
        "PersistentVolume v: spec",
        "worker",
    ]


NOT_TAKEN = {
    "a shell's line": {"*": "cd /tmp && python t.py"},
    "nothing": {"*": ""},
    "an open quote": {"*": "python 't.py"},
    "a variable": {"*": "LR=0.1 python t.py"},
    "a role that is not there": {"trainer": "python t.py"},
    "one line of two": {"ps": "true", "worker": "python 't.py"},
}


@pytest.mark.parametrize("commands", NOT_TAKEN.values(), ids=NOT_TAKEN)
def test_a_command_that_was_said_and_not_taken_is_not_missing_as_well(
    commands: dict[str, str], tmp_path: Path
) -> None:
    lacking: dict[str, Any] = {"image": "x", "command": []}
    for job in (a_job().with_container(**lacking).with_ps(1, **lacking), a_job().with_ps(1)):
        raised, sentences = told(job, tmp_path, commands=commands)
        assert raised is InvalidJob
        once = [words for words in sentences if "the script" not in words]
        assert len(once) == 1, sentences


def test_a_role_that_nobody_spoke_for_still_lacks_its_command(tmp_path: Path) -> None:
    lacking: dict[str, Any] = {"image": "x", "command": []}
    job = a_job().with_container(**lacking).with_ps(1, **lacking)
    _, sentences = told(job, tmp_path, commands={"ps": "python 't.py"})
    assert begin_as(
        sentences,
        ["--role ps --command: ", f"spec.worker.{POD}.containers[0].command (line 12): missing"],
    ), sentences
