"""What `openapi.json` says of OpenPAI's job routes beyond what all of its routes share."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from regatta.server.openpai.jobs.job_shapes import ExecutionWish, TagWish
from regatta.server.openpai.openpai_schemas import body_of, openpai_answers
from regatta.server.records.job_lists import SortBy
from regatta.server.schemas import Declared, Schema, of


class YamlText(Response):
    media_type = "text/yaml"


class PlainText(Response):
    media_type = "text/plain"


TEXT: Schema = {"type": "string"}
#: Of YAML: what it says.
MAP: Schema = {"type": "object"}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_ORDER: Schema = {
    "type": "string",
    "pattern": f"^(({'|'.join(by.value for by in SortBy)})(,(ASC|DESC))?)?$",
}
#: A config may come as any of these.
_CONFIGS = ("text/yaml", "text/plain", "application/json", "application/x-yaml")
EXECUTION, TAG = body_of(ExecutionWish), body_of(TagWish)
LIST_QUERY: dict[str, Any] = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "description": said, "schema": schema}
        for name, said, schema in (
            ("username", "Whose; several with commas.", TEXT),
            ("vc", "In which virtual clusters.", TEXT),
            ("state", "In which states.", TEXT),
            ("jobPriority", "Of which priorities.", TEXT),
            ("keyword", "Part of the owner's, job's or virtual cluster's name.", TEXT),
            ("tagsContain", "With at least one of these tags.", TEXT),
            ("tagsNotContain", "With none of these tags.", TEXT),
            ("offset", "How many to leave out.", _NUMBER),
            ("limit", "How many at most.", {**_NUMBER, "maximum": 50_000, "default": 5000}),
            ("order", "<field>,ASC or <field>,DESC; submissionTime,DESC if not said.", _ORDER),
            ("withTotalCount", "true: with the number of all that match.", TEXT),
        )
    ]
}


def config_body() -> dict[str, Any]:
    content = {kind: {"schema": TEXT} for kind in _CONFIGS}
    return {"requestBody": {"required": True, "content": content}}


def map_of(kind: type) -> Schema:
    return {"type": "object", "additionalProperties": of(kind)}


def either(*schemas: Schema) -> Schema:
    return {"oneOf": list(schemas)}


def text_answers(schemas: dict[int, Schema], media: type[Response]) -> Declared:
    """As `openpai_answers`, with an answer that is no JSON."""
    declared = openpai_answers({})
    for status, schema in schemas.items():
        declared[status] = {
            "description": "As asked.",
            "content": {str(media.media_type): {"schema": schema}},
        }
    return declared
