"""OpenPAI's own description of its API, as a judge of answers: status and shape.

It comes with OpenPAI's client (`js_sdk`). Whatever is asked through it is noted, so that a test can
say which operations and statuses nobody asked for.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import yaml

from tests.server.openpai.js_sdk import swagger
from tests.server.team.serving import Answer, TeamServer

#: What no test can make a healthy server answer.
_TROUBLE = ("500", "501")


class Contract:
    def __init__(self) -> None:
        self._described = swagger()
        # Its list of codes has not all that its own refusals are described by.
        codes = self._described["components"]["schemas"]["Response"]["properties"]["code"]["enum"]
        codes += [name for name in self._described["components"]["responses"] if name not in codes]
        #: Method, path as described, and status.
        self.seen: set[tuple[str, str, int]] = set()

    def promised(self) -> set[tuple[str, str, int]]:
        return {
            (method.upper(), path, int(status))
            for path, operations in self._described["paths"].items()
            for method, operation in operations.items()
            if method != "parameters"
            for status in operation["responses"]
            if status not in _TROUBLE
        }

    def judge(self, method: str, path: str, answer: Answer) -> None:
        """`path`: as described. Raises AssertionError for a status, and ValidationError for a
        body, that the description does not have."""
        operation = self._described["paths"][path][method.lower()]
        said = operation["responses"].get(str(answer.status))
        assert said is not None, f"{method} {path} answered {answer.status}: {answer.body[:400]!r}"
        self.seen.add((method, path, answer.status))
        for media, content in self._resolved(said).get("content", {}).items():
            sent = answer.headers.get_content_type()
            assert sent == media, f"{method} {path}: {sent}, not {media}"
            if "schema" in content:
                body = yaml.safe_load(answer.body) if "yaml" in media else json.loads(answer.body)
                self.validate(content["schema"], body)

    def validate(self, schema: Any, body: Any) -> None:
        whole = {**_plain(schema), "components": _plain(self._described["components"])}
        jsonschema_rs.validator_for(whole).validate(body)

    def schema(self, name: str) -> Any:
        return {"$ref": f"#/components/schemas/{name}"}

    def _resolved(self, value: Any) -> Any:
        while "$ref" in value:
            found = self._described
            for step in value["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            value = found
        return value


class Client:
    """Asks a server, and has every answer judged."""

    def __init__(self, server: TeamServer, contract: Contract) -> None:
        self.server, self.contract = server, contract

    def __call__(
        self,
        method: str,
        path: str,
        status: int,
        *,
        token: str | None,
        code: str = "",
        **sent: Any,
    ) -> Answer:
        """`path` as described, with its parameters in `sent`, as `user=`; `query`, `body`, `form`
        and `text` go with the request."""
        query = sent.pop("query", "")
        given = {key: sent.pop(key) for key in ("body", "form", "text") if key in sent}
        answer = self.server.ask(method, path.format(**sent) + query, token, **given)
        assert answer.status == status, f"{method} {path}: {answer.status} {answer.body[:400]!r}"
        self.contract.judge(method, path, answer)
        if code:
            assert answer.json["code"] == code, answer.body
        return answer


def _plain(schema: Any) -> Any:
    """OpenAPI 3.0's `nullable`, as JSON Schema says it."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items() if key != "nullable"}
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        plain["type"] = [schema["type"], "null"]
    return plain
