"""What an API server's refusal says, in a sentence that a person can read.

An API server quotes the value that it refuses. A number is worth reading; a whole object, which
comes as JSON or as a Go struct with every field that nobody set, hides what is wrong with it.
"""

from __future__ import annotations

import re

from regatta.engines.kubernetes.api.kube_errors import ApiError

LONGEST = 400

#: What a quoted object begins with: `core.SecurityContext{`, `[]core.Volume{`, `{"name":`.
_OBJECT = re.compile(r"[&*\[\]]*(?:\b\w+\.\w+)?\{")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_VALUE = re.compile(r"(?:Invalid|Duplicate|Unsupported) value: (?=: )")
_WRONG_TYPE = re.compile(
    r"json: cannot unmarshal (?P<found>\w+) into Go struct field \w+\.(?P<field>\S+) "
    r"of type (?P<right>\S+)"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n")


def in_a_sentence(error: ApiError) -> str:
    """The first thing that is wrong, without quoted objects, cut at a word."""
    causes = error.details.causes
    if error.invalid and causes:
        first = f"{causes[0].field}: {causes[0].message}".removeprefix(": ")
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        return _brief(first) + more
    return _brief(plain_words(error))


def plain_words(error: ApiError) -> str:
    """Without the request line that the client puts before the server's sentence."""
    method, _, rest = error.message.partition(" ")
    if method.isupper() and rest.startswith("/"):
        return rest.partition(": ")[2] or error.message
    return error.message


def _brief(text: str) -> str:
    text = _VALUE.sub("", _without_objects(text)).replace(": : ", ": ")
    text = _WRONG_TYPE.sub(_of_another_type, text)
    return _cut(_SENTENCE.split(text.strip(), maxsplit=1)[0].strip())


def _of_another_type(said: re.Match[str]) -> str:
    return f"{said['field']} is a {said['found']}; it should be a {said['right']}"


def _without_objects(text: str) -> str:
    found = _OBJECT.search(text)
    if found is None:
        return text
    return text[: found.start()] + _without_objects(text[_end_of(text, found.end()) :])


def _end_of(text: str, place: int) -> int:
    """Where the object whose brace was opened before `place` ends; the text's end if nowhere."""
    depth = 1
    while place < len(text) and depth:
        string = _STRING.match(text, place)
        if string is not None:
            place = string.end()
            continue
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    return place


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    kept, _, _ = text[: LONGEST - 3].rpartition(" ")
    return f"{kept.rstrip(' ,;:')} ..."
