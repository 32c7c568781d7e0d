"""A config on record, which is JSON, as the YAML that its readers want."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from regatta.api.openpai.shown_as_v2 import as_v2

#: libyaml where the wheel has it: the pure one needs a second for what a long config has.
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def in_yaml(written: str) -> str:
    return _dumped(msgspec.json.decode(written))


def in_v2s_yaml(written: str, protocol: int) -> str:
    """`protocol`: which it was sent as."""
    config = msgspec.json.decode(written)
    return _dumped(as_v2(config) if protocol == 1 else config)


def _dumped(config: dict[str, Any]) -> str:
    text: str = yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
