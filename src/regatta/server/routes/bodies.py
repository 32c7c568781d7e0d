"""What clients send, read and checked. Field names are camelCase, as in job files."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from regatta.engines.base import Submission

#: A job file may have 1 MiB; JSON escapes can make it longer, never by this much.
LONGEST_TEXT = 4 * 1024 * 1024


class Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class SubmissionBody(Body):
    text: str = Field(max_length=LONGEST_TEXT)
    source: str = "-"
    name: str | None = None
    namespace: str | None = None
    env: dict[str, str] = {}
    sets: tuple[str, ...] = ()
    volumes: dict[str, str] = {}
    strict: bool = False
    replace: bool = False
    no_gpu: bool = False
    no_preflight: bool = False
    directory: str = "/"
    shell: dict[str, str] = {}
    python: str | None = None
    runtime: Literal["none", "docker", "podman"] = "none"

    def submission(self) -> Submission:
        return Submission(**self.model_dump())


class ScaleBody(Body):
    role: str = "worker"
    replicas: int = Field(ge=0)
