"""The secrets of a job on this machine: one file in its folder that only its owner reads.

It is there before the job is, and goes when the job ends. Supervisors read it when they start, and
put what a container refers to into the variables of its process, so that it stands in nothing else
that is written: not in the database, not in run.json.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from regatta.api.secrets import OPAQUE, JobSecret

NAME = "secrets.json"
_PRIVATE = 0o600

_decode = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Which there are, without a word of what they say, and where their file is."""

    keys: dict[str, tuple[str, ...]] = {}
    file: str = ""

    @classmethod
    def of(cls, brought: Mapping[str, Mapping[str, str]], file: str = "") -> Secrets:
        return cls(keys={name: tuple(data) for name, data in brought.items()}, file=file)

    def has(self, name: str, key: str) -> bool:
        return key in self.keys.get(name, ())


NONE = Secrets()


def for_processes(secrets: tuple[JobSecret, ...]) -> dict[str, dict[str, str]]:
    """Those that replicas may refer to; who pulls images here has credentials of their own."""
    return {secret.name: secret.data for secret in secrets if secret.type == OPAQUE}


def write_secrets(folder: Path, secrets: tuple[JobSecret, ...]) -> None:
    """Into a job's folder, which is made; nothing where there are none. Safe on disk afterwards."""
    content = msgspec.json.encode(for_processes(secrets))
    if content == b"{}":
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(fd)
    finally:
        os.close(fd)


def known_secrets(folder: Path) -> Secrets:
    """What a job's folder holds."""
    path = folder / NAME
    try:
        return Secrets.of(_decode(path.read_bytes()), str(path))
    except FileNotFoundError:
        return NONE


def withdraw_secrets(folder: Path) -> None:
    """Of a job that does not come to be; its folder holds nothing else."""
    forget_secrets(folder)
    with suppress(OSError):
        folder.rmdir()


def forget_secrets(folder: Path) -> None:
    with suppress(FileNotFoundError):
        (folder / NAME).unlink()
