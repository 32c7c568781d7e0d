"""`$(VAR)` in commands and values, as Kubernetes reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(VAR)` by its value, `$$` by `$`; all else, and what nobody defines, as it stands."""

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(value, text)
