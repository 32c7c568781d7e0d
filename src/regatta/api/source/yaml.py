"""YAML text to plain values, with the line of each and a sentence for everything that is wrong.

The stock loader would accept duplicate keys, expand a bomb of aliases, lose the lines and stop
with a parser's words. Events are counted first (the parser keeps no tree then), so that what is
composed afterwards is known to be small and shallow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from regatta.api.checks.suggestions import shown_key
from regatta.api.errors import InvalidJob
from regatta.api.problems import Problem
from regatta.api.source.json_text import about_json, lines_of, read_json
from regatta.api.source.limits import MAX_BYTES, MAX_DEPTH, MAX_NODES
from regatta.api.source.paths import join

#: libyaml where the wheel has it: the pure parser needs seconds for what takes it milliseconds.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STANDARD = "tag:yaml.org,2002:"
_MERGE = _STANDARD + "merge"
#: Tags that mean a plain string here: a job file has no dates, and `=` is just a character.
_TEXT = {_STANDARD + name for name in ("str", "timestamp", "value")}
_KNOWN = _TEXT | {_MERGE} | {_STANDARD + n for n in ("null", "bool", "int", "float", "map", "seq")}


#: The line of what the command line brought.
NO_LINE = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a value stands, and a plain scalar as it was written (`010`, `yes`)."""

    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    value: Any
    line: int = 1
    #: By path; empty for JSON in one line.
    marks: dict[str, Mark] = field(default_factory=dict)


def read_documents(text: str | bytes) -> list[Document]:
    """Every document of a file that is not empty. Raises InvalidJob with lines."""
    checked = _decode(text)
    if checked.lstrip()[:1] == "{" and (parsed := _as_json(checked)) is not None:
        return [parsed]
    try:
        return _read_yaml(checked)
    except InvalidJob:
        if (wrong := about_json(checked)) is None:
            raise
        _refuse(f"this is no JSON any more: {wrong[0]}", wrong[1])


def _read_yaml(checked: str) -> list[Document]:
    _count(checked)
    with _reading(checked) as loader:
        documents = []
        while _guard(loader.check_node, checked):
            node = _guard(loader.get_node, checked)
            if not _is_empty(node):
                reader = _Reader()
                value = reader.value(node, "", 1)
                documents.append(Document(value, node.start_mark.line + 1, reader.marks))
    return documents


def read_value(text: str) -> Any:
    """One value of a command line: `3` is a number, `"3"` and `three` are text."""
    if not text:
        return ""
    documents = read_documents(text)
    return documents[0].value if documents else None


class _reading:
    """A loader that gives its buffers back."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> Any:
        self.loader = _guard(lambda: _Loader(self.text), self.text)
        return self.loader

    def __exit__(self, *_: object) -> None:
        self.loader.dispose()


def _decode(text: str | bytes) -> str:
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        _refuse(
            f"the file has {size:,} bytes; a job file is at most {MAX_BYTES:,}. "
            "Keep data and programs in files of their own and mount them"
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            byte = error.object[error.start]
            _refuse(f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8", line)
    text = text.removeprefix("\ufeff")
    for name, pattern in _UNREADABLE.items():
        if found := pattern.search(text):
            _refuse(f"{name}; remove it", text.count("\n", 0, found.start()) + 1)
    return text


_UNREADABLE = {
    "there is a NUL character (is this a binary file?)": re.compile("\0"),
    "there is half of a surrogate pair, which is not a character": re.compile("[\ud800-\udfff]"),
    "there is a control character": re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]"),
}


def _as_json(text: str) -> Document | None:
    """The text as JSON, or None to let the YAML reader say what is wrong."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    return Document(value, marks={place: Mark(line) for place, line in lines_of(text)})


def _count(text: str) -> None:
    depth = nodes = 0
    with _reading(text) as loader:
        while _guard(loader.check_event, text):
            event = _guard(loader.get_event, text)
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            nodes += isinstance(event, yaml.NodeEvent)
            if depth > MAX_DEPTH:
                _refuse(f"nested more than {MAX_DEPTH} levels deep", event.start_mark.line + 1)
            if nodes > MAX_NODES:
                _refuse_size()
            _check_tag(event)


def _check_tag(event: Any) -> None:
    tag = getattr(event, "tag", None)
    if tag in (None, "!") or tag in _KNOWN:
        return
    written = tag.replace(_STANDARD, "!!")
    line = event.start_mark.line + 1
    _refuse(f"the tag {shown_key(written)} is not allowed; write a plain value", line)


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _STANDARD + "null"


def _refuse(message: str, line: int | None = None) -> NoReturn:
    raise InvalidJob([Problem("", message, line=line)])


def _refuse_size() -> NoReturn:
    _refuse(
        f"the file has more than {MAX_NODES:,} values once its aliases are followed; "
        "a job needs a few hundred. Write out what the anchors repeat, or repeat less"
    )


class _Reader:
    """One document's nodes into values. Keeps count across aliases, which `_count` could not."""

    def __init__(self) -> None:
        self.marks: dict[str, Mark] = {}
        self.nodes = 0
        self.open: set[int] = set()

    def value(self, node: Any, path: str, depth: int) -> Any:
        self.nodes += 1
        line = node.start_mark.line + 1
        if self.nodes > MAX_NODES:
            _refuse_size()
        if id(node) in self.open:
            _refuse("an alias (*) stands inside its own anchor (&), so it would never end", line)
        if depth > MAX_DEPTH:
            _refuse(f"nested more than {MAX_DEPTH} levels deep", line)
        if isinstance(node, yaml.ScalarNode):
            plain = not node.style  # libyaml says "", the pure parser None
            self.marks[path] = Mark(line, node.value if plain else "")
            return _scalar(node)
        self.marks[path] = Mark(line)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [
                    self.value(item, join(path, i), depth + 1) for i, item in enumerate(node.value)
                ]
            return self.mapping(node, path, depth)
        finally:
            self.open.discard(id(node))

    def mapping(self, node: Any, path: str, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                for inherited in self.merged(value_node, path, depth):
                    merged = inherited | merged
                continue
            key = _key(key_node, line)
            if key in own:
                _refuse(
                    f"{shown_key(key)!r} is written twice in the same map, on lines {lines[key]} "
                    f"and {line}; keep one",
                    line,
                )
            lines[key] = line
            place = join(path, key)
            own[key] = self.value(value_node, place, depth + 1)
            # A person looks for the key, even where its value begins on the next line.
            self.marks[place] = Mark(line, self.marks[place].text)
        return merged | own

    def merged(self, node: Any, path: str, depth: int) -> list[dict[str, Any]]:
        several = isinstance(node, yaml.SequenceNode)
        values = [self.value(n, path, depth + 1) for n in (node.value if several else [node])]
        if not all(isinstance(value, dict) for value in values):
            _refuse("a merge key (<<) takes a map, or a list of maps", node.start_mark.line + 1)
        return values


def _key(node: Any, line: int) -> str:
    if not isinstance(node, yaml.ScalarNode):
        _refuse("a key must be a word, not a map or a list", line)
    if node.tag in _TEXT or node.tag == "!":
        return str(node.value)
    kind = {"null": "nothing", "bool": "true or false"}.get(
        node.tag.removeprefix(_STANDARD), "a number"
    )
    written = shown_key(node.value)
    _refuse(f'YAML reads the key {written!r} as {kind}; put it in quotes: "{written}"', line)


def _scalar(node: Any) -> Any:
    tag, text, line = node.tag, node.value, node.start_mark.line + 1
    if tag == _STANDARD + "null":
        return None
    if tag == _STANDARD + "bool":
        return text.lower() in ("yes", "true", "on")
    if tag == _STANDARD + "int":
        return _whole(text, line)
    if tag == _STANDARD + "float":
        return _float(text, line)
    return text


def _whole(text: str, line: int) -> int | str:
    """YAML 1.1's whole numbers: a leading zero means octal, as in `defaultMode: 0644`."""
    digits = text.replace("_", "").lower()
    if ":" in digits:  # 1:30 is ninety in YAML 1.1, and a surprise to everybody
        return text
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = 16 if digits[:2] == "0x" else 2 if digits[:2] == "0b" else 10
    if base == 10 and len(digits) > 1 and digits.startswith("0"):
        base = 8
    try:
        number = sign * int(digits if base == 10 or len(digits) < 99 else "", base)
    except ValueError:
        number = 2**64
    if not -(2**63) <= number < 2**63:
        _refuse("the number does not fit 64 bits; as a text, put it in quotes", line)
    return number


def _float(text: str, line: int) -> float | str:
    digits = text.replace("_", "").lower()
    if ":" in digits:
        return text
    try:
        number = float(digits)
    except ValueError:  # .inf, .nan
        number = math.inf
    if not math.isfinite(number):
        _refuse("this is not a number that a job can hold; put it in quotes", line)
    return number


def _guard(step: Callable[[], Any], text: str) -> Any:
    """Run one step of the parser; its complaints become ours."""
    try:
        return step()
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        _refuse(f"the character U+{code:04X} is not allowed in a YAML file; remove it")
    except yaml.MarkedYAMLError as error:
        said = f"{error.problem or ''} {error.context or ''}".strip()
        # What was never closed, or lacks its colon, is noticed later than it was written.
        began = re.search("end of stream|expected ',' or|expected ':'|node content", said)
        mark = (began and error.context_mark) or error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        _refuse(_sentence(said, text, line), line)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        _refuse(f"this is not YAML that can be read ({error})")


#: What the parser says, and what a person needs.
_SENTENCES = {
    "mapping values are not allowed": "a `:` is not expected here; is this line indented like "
    "those above it, or does a text with a colon need quotes?",
    "could not find expected ':'|did not find expected ':'": "this line is no `key: value`; is a "
    "`:` missing, or the space after it?",
    "did not find expected key|expected <block end>": "the indentation does not fit the lines "
    "before it; put the keys of one map in the same column",
    "did not find expected '-' indicator": "the items of a list must start with `- ` in one column",
    "unexpected end of stream|expected ',' or|node content": "a quote or bracket is opened and "
    "never closed",
    "found undefined alias": "an alias (*) names an anchor (&) that does not exist; a text that "
    "starts with * needs quotes",
    "cannot start any token|reserved indicator": "a text cannot start with this character; "
    "put it in quotes",
    "found duplicate anchor": "an anchor (&) is given twice; use another name",
    "undefined tag handle": "a tag (!) is not known here; write a plain value",
    "block sequence entries are not allowed": "a list item (`- `) is not expected here; put the "
    "list on a line of its own below its key",
}


def _sentence(said: str, text: str, line: int | None) -> str:
    lines = text.split("\n")
    if line and line <= len(lines) and re.match(r"\s*\t", lines[line - 1]):
        return "a tab is used for indentation; YAML wants spaces"
    for pattern, sentence in _SENTENCES.items():
        if re.search(pattern, said):
            return sentence
    return f"this is not valid YAML ({said})"
