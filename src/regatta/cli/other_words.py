"""Words of neighbouring tools, and what they are called here."""

from __future__ import annotations

import click

OTHER_VERBS = {
    "apply": "run", "create": "run", "start": "run", "launch": "run", "train": "run", "exec": "run",
    "queue": "submit", "check": "validate", "lint": "validate",
    "list": "get", "ls": "get", "ps": "get", "jobs": "get", "status": "get",
    "show": "describe", "inspect": "describe", "info": "describe", "log": "logs", "tail": "logs",
    "kill": "stop", "cancel": "stop", "abort": "stop", "terminate": "stop",
    "rm": "delete", "remove": "delete", "pause": "suspend", "continue": "resume", "nodes": "top",
    "signin": "login", "signout": "logout", "user": "users", "group": "groups", "token": "tokens",
    "accounts": "users", "passwd": "password",
}  # fmt: skip

#: The same job once more, in place of the one that has its name.
AGAIN = ("restart", "rerun", "retry")
#: What `kubectl get` wants before a name.
KINDS = ("job", "jobs", "pdj", "paddlejob", "paddlejobs")


def other_verb(word: str) -> str:
    """What to type for a word that is no verb; empty: the one that is spelt most like it."""
    if word.endswith((".yaml", ".yml", ".json")):
        return f"run {word}"
    return "run FILE --replace" if word in AGAIN else OTHER_VERBS.get(word, "")


#: What is no option here, and the field that is meant.
_FIELDS = {
    "--replicas": "spec.worker.replicas=N",
    "--workers": "spec.worker.replicas=N",
    "--image": "spec.worker.template.spec.containers[0].image=NAME",
    "--gpus": "'spec.worker.template.spec.containers[0].resources.limits[nvidia.com/gpu]=N'",
    "--timeout": "spec.runPolicy.activeDeadlineSeconds=N",
    "--retries": "spec.runPolicy.backoffLimit=N",
}
_NAMES_THE_FILE = ("-f", "--file", "--filename")


def other_option(verb: str, option: str, args: list[str]) -> str:
    """What to write in place of an option that a verb about a job file does not have; empty: the
    one that is spelt most like it."""
    if path := _FIELDS.get(option):
        return f"there is no {option}; a field of the job is changed with --set {path}"
    if option not in _NAMES_THE_FILE:
        return ""
    given = next((word for word in args if word.partition("=")[0] == option), option)
    file = given.partition("=")[2] or "".join(args[args.index(given) + 1 :][:1]) or "FILE"
    return f"there is no {option}; the job file is named by itself: `regatta {verb} {file}`"


def asking(context: click.Context, wrong: click.UsageError) -> str:
    """A usage error of click's in words that say what to type."""
    verb = context.command.name
    if isinstance(wrong, click.MissingParameter) and wrong.param is not None:
        if wrong.param.name in ("file", "files"):
            return _which_file(str(verb))
        if wrong.param.name in ("name", "names"):
            return (
                f"which job? `regatta {verb}` needs a name; `regatta get` lists the jobs there are"
            )
    if wrong.message.startswith("Got unexpected extra argument"):
        extra = wrong.message.partition("(")[2].rstrip(")")
        takes = {parameter.name for parameter in context.command.params}
        if "file" in takes:
            return f"{extra} is one file too many; `regatta {verb}` takes one, `validate` several"
        if "name" in takes:
            return f"{extra} is one name too many; `regatta {verb}` takes one, of a job"
    return wrong.format_message().replace("a valid integer range", "a whole number")


def _which_file(verb: str) -> str:
    from regatta.cli.submit.jobfile import job_files_in

    question = (
        f"which file? `regatta {verb}` needs a job file, a folder that holds job.yaml, or - for "
        "standard input"
    )
    here = job_files_in(".")
    return f"{question}. Here lies one: `regatta {verb} {here[0]}`" if here else question
