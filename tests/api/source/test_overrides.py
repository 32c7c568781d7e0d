"""What the command line changes before a job is judged."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from regatta.api.load import Loaded, load_job
from regatta.api.source.overrides import set_value
from regatta.api.source.paths import split
from tests.api.builders import a_job, a_pod_group, errors_of, problems_of

SET: dict[str, tuple[str, Any]] = {
    "a number": ("spec.worker.replicas=4", 4),
    "text": ("metadata.name=other", "other"),
    "quoted text": ('metadata.labels.version="3"', "3"),
    "a flag": ("spec.runPolicy.suspend=true", True),
    "a list in flow style": ("spec.worker.template.spec.containers[0].args=[a, 'b']", ["a", "b"]),
    "a value with = in it": ("spec.worker.template.spec.containers[0].args[0]=--lr=1", "--lr=1"),
    "nothing at all": ("spec.worker.template.spec.containers[0].workingDir=", ""),
    "a map that is made on the way": ("spec.schedulingPolicy.queue=gold", "gold"),
    "a key with dots in brackets": ("metadata.labels[example.com/team]=nlp", "nlp"),
    "the next item of a list": ("spec.worker.template.spec.containers[1].name=side", "side"),
    "null": ("spec.worker.template=null", None),
}


@pytest.mark.parametrize(("option", "value"), SET.values(), ids=SET)
def test_set_puts_a_typed_value_at_a_path(option: str, value: Any) -> None:
    document: Any = a_job().doc()
    set_value(document, option)
    for step in split(option.partition("=")[0]):
        document = document[step]
    assert document == value


REFUSED = {
    "no =": ("spec.worker.replicas", "write path=value, such as spec.worker.replicas=4"),
    "no path": ("=4", "the path is empty"),
    "another root": ("worker.replicas=4", 'a path starts with spec or metadata; found "worker"'),
    "a misspelt root": (
        "sepc.worker.replicas=4",
        'a path starts with spec or metadata; did you mean spec? found "sepc"',
    ),
    "below a number": (
        "spec.worker.replicas.min=1",
        "spec.worker.replicas is 2, not a map, so min cannot be set in it",
    ),
    "an item of a map": (
        "spec.worker[0]=1",
        "spec.worker is a map, not a list, so it has no item [0]",
    ),
    "an item too far": (
        "spec.worker.template.spec.containers[3].name=x",
        "spec.worker.template.spec.containers has no item [3]; the last is [0], and [1] adds one",
    ),
    "a path with a hole": ("spec..worker=1", "cannot read '..worker' as the next step of a path"),
    "a value that is no YAML": (
        "spec.worker.replicas=[1",
        'cannot read the value "[1": a quote or bracket is opened and never closed',
    ),
    "a tag": (
        "metadata.name=!!python/name:os.system x",
        'cannot read the value "!!python/name:os.system x": the tag !!python/name:os.system is not '
        "allowed; write a plain value",
    ),
}


@pytest.mark.parametrize(("option", "sentence"), REFUSED.values(), ids=REFUSED)
def test_set_says_which_step_cannot_be_taken(option: str, sentence: str) -> None:
    assert errors_of(a_job(), sets=[option]) == [f"--set {option}: {sentence}"]


def test_a_misspelt_step_is_told_as_any_other_unknown_field() -> None:
    [problem] = problems_of(a_job().text(), sets=["spec.wroker.replicas=3"])
    assert problem.path == "spec.wroker"
    assert "did you mean worker?" in problem.message


def test_name_and_namespace_replace_those_of_the_file_and_take_its_pod_group_along() -> None:
    loaded = load_job(a_job().text(a_pod_group(2)), name="other", namespace="team")
    assert (loaded.job.namespace, loaded.job.name) == ("team", "other")
    group = loaded.companions.pod_group("team", "other")
    assert group is not None
    assert group.min_member == 2


def test_a_name_from_the_command_line_is_judged_like_any_other() -> None:
    [problem] = problems_of(a_job().text(), name="Not A Name")
    assert problem.path == "metadata.name"
    assert problem.line is None


def test_env_reaches_every_container_and_replaces_what_was_there() -> None:
    job = a_job().with_ps()
    job.container()["env"] = [{"name": "A", "value": "old"}, {"name": "B", "value": "b"}]
    job.pod(initContainers=[{"name": "first", "command": ["true"]}])
    spec = job.load(env={"A": "1"}).job.spec
    assert spec.ps is not None
    assert spec.worker is not None
    pod = spec.worker.template["spec"]
    assert pod["containers"][0]["env"] == [{"name": "B", "value": "b"}, {"name": "A", "value": "1"}]
    assert pod["initContainers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert spec.ps.template["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_env_with_an_impossible_name_is_refused() -> None:
    assert errors_of(a_job(), env={"Ä": "1"}) == [
        '--env Ä: found "Ä"; a variable\'s name has printable ASCII characters and no ='
    ]


def test_volume_puts_a_directory_in_the_place_of_whatever_it_was() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "nfs"}}
    job = a_job().pod(volumes=[claim])
    volumes = job.load(volumes={"data": "/srv/data"}).job.spec.roles()["worker"].template["spec"]
    assert volumes["volumes"] == [{"name": "data", "hostPath": {"path": "/srv/data"}}]


def test_a_volume_that_no_role_has_is_refused_with_those_there_are() -> None:
    job = a_job().pod(volumes=[{"name": "data", "emptyDir": {}}, {"name": "logs", "emptyDir": {}}])
    assert errors_of(job, volumes={"date": "/srv"}) == [
        '--volume date=/srv: no template has a volume "date"; did you mean data? '
        "the job's volumes are data and logs"
    ]
    assert errors_of(job, volumes={"data": "srv"}) == [
        '--volume data=srv: found "srv"; write a directory that starts with /'
    ]


def commands_of(job: a_job, **commands: str) -> dict[str, tuple[Any, Any]]:
    given = {("*" if role == "every" else role): line for role, line in commands.items()}
    loaded = job.load(commands=given).job.spec.roles()
    first = {name: role.template["spec"]["containers"][0] for name, role in loaded.items()}
    return {name: (found.get("command"), found.get("args")) for name, found in first.items()}


def test_a_command_is_the_whole_of_what_every_role_runs() -> None:
    job = a_job().with_ps()
    job.container("worker").update({"command": ["python"], "args": ["old.py"]})
    assert commands_of(job, every="python 'my train.py' --lr=1") == {
        "ps": (["python", "my train.py", "--lr=1"], None),
        "worker": (["python", "my train.py", "--lr=1"], None),
    }


def test_a_role_has_the_command_that_is_said_for_it() -> None:
    assert commands_of(a_job().with_ps(), ps="./serve", every="./train") == {
        "ps": (["./serve"], None),
        "worker": (["./train"], None),
    }
    assert commands_of(a_job().with_ps(), worker="./train") == {
        "ps": (["python", "train.py"], None),
        "worker": (["./train"], None),
    }
    tasks = a_job().with_tasks({"name": "cox", "replicas": 1}, {"name": "bank", "replicas": 1})
    assert commands_of(tasks, bank="./bank")["bank"] == (["./bank"], None)


def test_only_the_first_container_gets_the_command() -> None:
    job = a_job()
    job.document["spec"]["worker"]["template"]["spec"]["containers"].append(
        {"name": "side", "command": ["sleep", "1"]}
    )
    pod = job.load(commands={"*": "true"}).job.spec.roles()["worker"].template["spec"]
    assert [container["command"] for container in pod["containers"]] == [["true"], ["sleep", "1"]]


NO_COMMAND = {
    "a quote that stays open": (
        "*", "python 'train.py", '--command: "python \'train.py" has a quote that is never closed; '
        "close it"),
    "a \\ behind everything": (
        "*", "python a\\", '--command: "python a\\\\" ends with a \\; leave it out'),
    "nothing to run": (
        "*", " ", '--command: it is empty; write what to run, such as "python train.py"'),
    "another shell's line": (
        "*", "cd /x && python t.py",
        '--command: "cd /x && python t.py" is for a shell, and none reads it; ask for one: '
        "--command 'sh -c \"cd /x && python t.py\"'"),
    "no program at all": (
        "*", "'' train.py",
        '--command: its first word is "", and that is the program; write what to run, such as '
        '"python train.py"'),
    "a variable first": (
        "*", "LR=1 python t.py",
        '--command: "LR=1" is no program; variables are set with --env LR=1'),
    "a role that is not there": (
        "wroker", "true",
        '--role wroker --command: the job has no role "wroker"; did you mean worker? the job\'s '
        "roles are worker"),
}  # fmt: skip


@pytest.mark.parametrize(("role", "line", "sentence"), NO_COMMAND.values(), ids=NO_COMMAND)
def test_a_command_that_cannot_be_one_is_refused(role: str, line: str, sentence: str) -> None:
    assert errors_of(a_job(), commands={role: line}) == [sentence]


FOR_A_SHELL = (
    "a.py && b.py", "a.py&&b.py", "a.py || b.py", "a.py | tee x", "a.py|tee x", "a.py >x",
    "a.py 2>x", "a.py <x", "a.py; b.py", "a.py;b.py", "a.py &", "a.py $HOME",
    "a.py --d=${DATA}/x", "a.py `date`", "a.py $(cat x)", "a.py\nb.py", "a.py ~/x", "a.py ~",
    "(a.py)", "cd /x && a.py", "export A=1; a.py",
)  # fmt: skip


@pytest.mark.parametrize("line", FOR_A_SHELL)
def test_a_line_that_only_a_shell_understands_is_refused_with_the_line_that_asks_for_one(
    line: str,
) -> None:
    [sentence] = errors_of(a_job(), commands={"*": line})
    found = re.search(r"is for a shell, .*ask for one: (--command .*)", sentence, re.DOTALL)
    assert found, sentence
    option, better = shlex.split(found[1])[:2]
    assert option == "--command"
    loaded = a_job().load(commands={"*": better.removesuffix(";")})
    assert command_of(loaded) == ["sh", "-c", line]


NOT_SH = {
    "source env.sh && a.py": "--command 'bash -c \"source env.sh && a.py\"'",
    "[[ -f x ]] && a.py": "--command 'bash -c \"[[ -f x ]] && a.py\"'",
    "a.py <(cat x)": "--command 'bash -c \"a.py <(cat x)\"'",
    "source venv/bin/activate && python t.py":
        "--python venv/bin/python --command 'python t.py'",
    ". 'my venv/bin/activate'; python t.py | tee x":
        "--python 'my venv/bin/python' --command 'sh -c \"python t.py | tee x\"'",
    "source venv/bin/activate": "--python venv/bin/python",
    "cd '/my data'": "--workdir '/my data'",
    "export A=1 B='x y'": "--env A=1 --env 'B=x y'",
}  # fmt: skip


@pytest.mark.parametrize("line", NOT_SH)
def test_what_no_plain_shell_would_do_is_offered_in_the_way_that_does_it(line: str) -> None:
    [sentence] = errors_of(a_job(), commands={"*": line})
    assert NOT_SH[line] in sentence
    assert NOT_SH[line].startswith("--command") or "'sh -c \"source" not in sentence


AS_THEY_STAND = {
    "sh -c 'a && b; c $X'": ["sh", "-c", "a && b; c $X"],
    'sh -c "echo $PADDLE_TRAINER_ID"': ["sh", "-c", "echo $PADDLE_TRAINER_ID"],
    'env x="a; b"': ["env", "x=a; b"],
    "find . -name \\;": ["find", ".", "-name", ";"],
    "a.py '$HOME' \\$HOME '~' 'a|b' \">\"": ["a.py", "$HOME", "$HOME", "~", "a|b", ">"],
    "a.py http://x/?a=1&b=2": ["a.py", "http://x/?a=1&b=2"],
    "a.py $(PADDLE_TRAINER_ID) a~b 5$ *.txt": [
        "a.py",
        "$(PADDLE_TRAINER_ID)",
        "a~b",
        "5$",
        "*.txt",
    ],
    "a.py \\\n  --lr 1\n": ["a.py", "--lr", "1"],
    "a.py \\\r\n  --lr 1": ["a.py", "--lr", "1"],
    "a.py 'x\ny' 'a\\\nb' \"c\\\nd\"": ["a.py", "x\ny", "a\\\nb", "cd"],
}


@pytest.mark.parametrize(("line", "words"), AS_THEY_STAND.items())
def test_what_means_itself_is_handed_over(line: str, words: list[str]) -> None:
    loaded = a_job().load(commands={"*": line})
    assert command_of(loaded) == words
    assert not [warning for warning in loaded.warnings if warning.path == "--command"]


def test_a_variable_in_double_quotes_is_handed_over_with_a_warning() -> None:
    loaded = a_job().load(commands={"*": 'a.py "at $HOME"'})
    assert command_of(loaded) == ["a.py", "at $HOME"]
    [warning] = [warning for warning in loaded.warnings if warning.path == "--command"]
    assert warning.message.startswith('"$HOME" is handed over as it stands, for no shell reads')


def command_of(loaded: Loaded) -> list[str]:
    command: list[str] = loaded.job.spec.roles()["worker"].template["spec"]["containers"][0][
        "command"
    ]
    return command


def test_a_nul_from_the_command_line_is_refused_with_its_place() -> None:
    place = "spec.worker.template.spec.containers[0].env[0].value"
    option = 'spec.worker.template.spec.containers[0].env=[{name: A, value: "a\\0b"}]'
    told = "the text has a NUL character, which no process could be given"
    assert errors_of(a_job(), sets=[option]) == [f"{place}: {told}"]
    assert errors_of(a_job(), env={"A": "a\0b"}) == [
        "--env A: the value has a NUL character, which no process could be given"
    ]
    assert errors_of(a_job(), commands={"*": "echo a\0b"}) == [
        f"spec.worker.template.spec.containers[0].command[1]: {told}"
    ]


def test_text_without_quotes_is_told_as_it_was_written() -> None:
    assert errors_of(a_job(), sets=["metadata.name=010"]) == [
        "metadata.name: found 010, which YAML reads as 8; it must be text, so keep its quotes: "
        "--set 'metadata.name=\"010\"'"
    ]
    name = "spec.worker.template.spec.containers[0].name"
    assert errors_of(a_job(), sets=[f"{name}=yes"]) == [
        f"{name}: found yes, which YAML reads as true; it must be text, so keep its quotes: "
        f"--set '{name}=\"yes\"'"
    ]
    [problem] = problems_of(a_job().text().replace("name: demo", "name: 010"))
    assert problem.message.endswith('put it in quotes: "010"')
