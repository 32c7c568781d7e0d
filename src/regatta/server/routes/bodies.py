"""What clients send, read and checked. Field names are camelCase, as in job files."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from regatta.engines.base import Shell, Submission

#: A job file may have 1 MiB; JSON escapes can make it longer, never by this much.
LONGEST_TEXT = 4 * 1024 * 1024
#: Enough for any client's own random words.
LONGEST_KEY = 256
LONGEST_USER = 64
#: Of a body, more than any has; and of what one of them holds.
MOST_FIELDS, MOST_ENTRIES = 100, 10_000
LONGEST_URI = 4096


class Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def not_too_many(cls, sent: Any) -> Any:
        """Whatever is wrong with each would be told, and nobody is answered meanwhile."""
        if not isinstance(sent, dict):
            return sent
        if len(sent) > MOST_FIELDS:
            raise ValueError(f"there are {len(sent):,} fields; {MOST_FIELDS} is the most")
        for field, value in sent.items():
            if isinstance(value, dict | list) and len(value) > MOST_ENTRIES:
                raise ValueError(
                    f"{field[:40]} has {len(value):,} entries; {MOST_ENTRIES:,} is the most"
                )
        return sent

    @model_validator(mode="after")
    def all_of_it_is_text(self) -> Self:
        """JSON can spell half a character, which nobody could write down again."""
        for field, value in self.model_dump(by_alias=True).items():
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError as odd:
                half = odd.object[odd.start : odd.end].encode("ascii", "backslashreplace").decode()
                said = f"{field}: {half} is half a character; send whole ones"
                raise ValueError(said) from None
        return self


class ShellBody(Body):
    """The submitting shell, for a server on the same machine."""

    directory: str = ""
    environment: dict[str, str] = {}
    python: str | None = None
    runtime: Literal["none", "docker", "podman"] = "none"
    volumes: dict[str, str] = {}
    no_gpu: bool = False
    no_preflight: bool = False


class SubmissionBody(Body):
    text: str = Field(max_length=LONGEST_TEXT)
    source: str = "-"
    name: str | None = None
    namespace: str | None = None
    env: dict[str, str] = {}
    sets: tuple[str, ...] = ()
    commands: dict[str, str] = {}
    strict: bool = False
    replace: bool = False
    key: str = Field(default="", max_length=LONGEST_KEY)
    user: str = Field(default="", max_length=LONGEST_USER)
    default_fs_uri: str = Field(default="", max_length=LONGEST_URI)
    shell: ShellBody | None = None

    def read(self) -> tuple[Submission, Shell | None]:
        submission = Submission(**self.model_dump(exclude={"shell"}))
        return submission, Shell(**self.shell.model_dump()) if self.shell else None


class ScaleBody(Body):
    role: str = "worker"
    replicas: int = Field(ge=0, strict=True)
