"""From a job file to a frozen Job: the way in, step by step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from regatta.api import defaults
from regatta.api.checks import advice, rules, schema, template_rules, template_shape
from regatta.api.checks.suggestions import few_guesses, shown
from regatta.api.errors import InvalidConfig, InvalidJob
from regatta.api.job import Job
from regatta.api.openpai.conversion import Converted, convert, is_openpai, renamed, secrets_of
from regatta.api.openpai.wanted import Setting
from regatta.api.problems import Problem
from regatta.api.secrets import JobSecret
from regatta.api.source import documents, overrides
from regatta.api.source.companions import Companions
from regatta.api.source.leaving_out import leave_out
from regatta.api.source.limits import MAX_PROBLEMS, capped, check_depth, check_plain
from regatta.api.source.paths import lineage
from regatta.api.source.renaming import companion_documents, follow_the_job
from regatta.api.source.yaml import NO_LINE, Document, Mark, read_documents
from regatta.api.stored import read_spec, without_nulls

NO_COMPANIONS = Companions()
NO_SETTING = Setting()
#: One mistake may hide another, and that a third.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Loaded:
    job: Job
    warnings: tuple[Problem, ...] = ()
    companions: Companions = NO_COMPANIONS
    #: The job as it was written, with what the command line changed: what an API server is sent.
    document: dict[str, Any] = field(default_factory=dict)
    #: Likewise the documents that the companions were read from.
    beside: tuple[dict[str, Any], ...] = ()
    #: What is wrong with it, where it was read as far as it goes: the job is without that.
    wrong: tuple[Problem, ...] = ()
    #: What the file brings for the job's processes alone; no part of the job or its document.
    secrets: tuple[JobSecret, ...] = ()
    #: What it was as one of OpenPAI's configs, where it was one.
    config: Converted | None = None
    #: Where its values stand in the file, by path.
    marks: dict[str, Mark] = field(default_factory=dict)
    #: What was found at a place of the job, at the one of the file that it comes from.
    told: Callable[[Problem], Problem] = lambda problem: problem

    def with_lines(self, problems: Iterable[Problem]) -> list[Problem]:
        """Those that somebody else found in the job, as its author knows their places: with their
        lines in the file, and under the names that they have there."""
        return list(map(self.told, _with_lines(problems, self.marks)))


@few_guesses()
def load_job(
    text: str | bytes,
    *,
    source: str = "-",
    strict: bool = False,
    name: str | None = None,
    namespace: str | None = None,
    home_namespace: str | None = None,
    env: Mapping[str, str] = {},
    sets: Sequence[str] = (),
    commands: Mapping[str, str] = {},
    volumes: Mapping[str, str] = {},
    as_far_as_it_goes: bool = False,
    setting: Setting = NO_SETTING,
) -> Loaded:
    """Read a job file: one PaddleJob and, if there are any, its companions; or one of OpenPAI's
    configs, which becomes a PaddleJob first. What that needs to know is its `setting`.

    `namespace` goes before the file's own, `home_namespace` is for a file that has none.

    1. The text becomes documents (`yaml_reader`), the documents a job and companions (`documents`).
    2. The command line changes the job's document (`overrides`).
    3. The result is judged as `validate_document` does.

    Raises InvalidJob with every problem at once, each with its line where it has one; if it is to
    go as far as it goes, only where what is wrong leaves no job to look at.
    """
    read = read_documents(text)
    for one in read:
        check_depth(one.value)
    config = None
    if len(read) == 1 and is_openpai(read[0].value):
        config = _Config(read[0], name, setting)
        read, name = [config.job], None
    with config or nullcontext():
        found = documents.sort(read, source)
        document = copy.deepcopy(found.job.value)
        check_plain(document)
        written = _identity(document)
        if namespace is None and not _names_namespace(document):
            namespace = home_namespace
        changed, problems = overrides.apply(
            document,
            name=name,
            namespace=namespace,
            env=env,
            sets=sets,
            commands=commands,
            volumes=volumes,
        )
        check_plain(document)  # a value of the command line may be as odd as one of the file
        companions = follow_the_job(found.companions, written, _identity(document))
        marks = {
            path: mark if changed.keys().isdisjoint(lineage(path)) else Mark(NO_LINE)
            for path, mark in found.job.marks.items()
        } | {place: Mark(NO_LINE, text) for place, text in changed.items()}
        try:
            loaded = _judge(document, companions, strict, marks, found.problems + problems)
            beside = companion_documents(found.beside, written, _identity(document))
            loaded = replace(loaded, beside=beside)
        except InvalidJob as invalid:
            wrong = _errors(invalid.problems)
            rest = _rest(document, companions, marks, wrong) if as_far_as_it_goes else None
            if rest is None:
                raise
            loaded = replace(rest, wrong=tuple(wrong))
    return loaded if config is None else config.complete(loaded)


class _Config:
    """One of OpenPAI's, on its way as the PaddleJob that it becomes. What is found to be wrong with
    that, while it is being loaded, is told at the fields that the config's author wrote."""

    def __init__(self, config: Document, name: str | None, setting: Setting) -> None:
        """Another `name` is another name of theirs. Raises InvalidConfig."""
        try:
            self._converted = convert(renamed(config.value, name), setting)
        except InvalidConfig as wrong:
            raise InvalidConfig(_with_lines(wrong.problems, config.marks), wrong.protocol) from None
        origins = self._converted.marks.items()
        lines = {ours: _mark_of(theirs, config.marks) for ours, theirs in origins}
        marks = {ours: mark for ours, mark in lines.items() if mark is not None}
        self.job = Document(self._converted.document, config.line, marks)
        self._warnings = _with_lines(self._converted.warnings, config.marks)

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, InvalidJob):
            told = list(map(self._converted.told, error.problems))
            raise InvalidConfig(told, self._converted.protocol) from None

    def complete(self, loaded: Loaded) -> Loaded:
        told = self._converted.told
        return replace(
            loaded,
            warnings=(*self._warnings, *map(told, loaded.warnings)),
            wrong=tuple(map(told, loaded.wrong)),
            secrets=secrets_of(self._converted),
            config=self._converted,
            told=told,
        )


@few_guesses()
def validate_document(
    document: object, *, strict: bool = False, companions: Companions = NO_COMPANIONS
) -> Loaded:
    """Judge one PaddleJob that is already parsed. Raises InvalidJob with every problem at once."""
    check_plain(document)
    if not isinstance(document, dict):
        raise InvalidJob([Problem("", f"found {shown(document)}; a job is a map with apiVersion, "
                                  "kind, metadata and spec")])  # fmt: skip
    return _judge(document, companions, strict, {}, [])


def _judge(
    document: dict[str, Any],
    companions: Companions,
    strict: bool,
    marks: dict[str, Mark],
    problems: list[Problem],
) -> Loaded:
    """Identity, shape, rules, templates, advice: all of them, whatever the first ones find."""
    document = without_nulls(document)  # a copy: the caller's stays as it is
    problems = [*problems, *documents.check_identity(document)]
    draft, malformed, explained = schema.read(document, marks)
    problems += malformed
    problems += _news(rules.check(draft, companions), explained)
    roles = draft.spec.roles() if draft.spec else {}
    unknown: set[str] = set()
    for path, (_, role) in roles.items():
        if role.template is None:
            continue
        place = f"{path}.template"
        shape = template_shape.check_shape(role.template, place, strict=strict, marks=marks)
        problems += shape
        told = {problem.path for problem in _errors(shape)}
        unknown |= {problem.path for problem in shape if problem.severity == "warning"}
        problems += _news(template_rules.check_meaning(role.template, place), told)
    spoken = {path for path, mark in marks.items() if mark.line == NO_LINE}
    problems += advice.advise(draft, companions, spoken)
    placed = _with_lines(problems, marks)
    placed.sort(key=lambda problem: problem.line or 0)
    errors = _errors(placed)
    if errors:
        # Where the command is missing, a `comand` that has no effect is why.
        unknown -= {problem.path for problem in errors}
        beside = [problem for problem in placed if problem.path in unknown]
        raise InvalidJob([*capped(errors), *beside][: MAX_PROBLEMS + 1])
    warnings = capped([problem for problem in placed if problem.severity == "warning"])
    return Loaded(_job(draft, document), tuple(warnings), companions, document, marks=marks)


def _rest(
    document: dict[str, Any],
    companions: Companions,
    marks: dict[str, Mark],
    wrong: Sequence[Problem],
) -> Loaded | None:
    """The job without what is wrong with it, where it then is one."""
    left = copy.deepcopy(document)
    for _ in range(_ROUNDS):
        if not all(leave_out(left, problem.path) for problem in wrong):
            return None
        try:
            return _judge(left, companions, False, marks, [])
        except InvalidJob as still:
            wrong = _errors(still.problems)
    return None


def _job(draft: schema.JobDraft, document: dict[str, Any]) -> Job:
    metadata = defaults.metadata_of(draft.metadata or schema.MetadataDraft())
    return Job(metadata=metadata, spec=read_spec(document["spec"]))


def _news(found: Iterable[Problem], told: set[str]) -> list[Problem]:
    """What was found, less what only follows from something that is told already."""
    return [problem for problem in found if told.isdisjoint(lineage(problem.path))]


def _errors(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


def _with_lines(problems: Iterable[Problem], marks: dict[str, Mark]) -> list[Problem]:
    return [_with_line(problem, marks) for problem in problems]


def _with_line(problem: Problem, marks: dict[str, Mark]) -> Problem:
    if problem.line is not None or ": " in problem.path:
        return problem
    mark = _mark_of(problem.path, marks)
    return problem if mark is None else replace(problem, line=mark.line or None)


def _mark_of(path: str, marks: dict[str, Mark]) -> Mark | None:
    """Its own, or that of the nearest that holds it."""
    return next((marks[at] for at in lineage(path) if at in marks), None)


def _names_namespace(document: dict[str, Any]) -> bool:
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and metadata.get("namespace") is not None


def _identity(document: dict[str, Any]) -> tuple[object, object]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return None, None
    return metadata.get("namespace") or defaults.NAMESPACE, metadata.get("name")
