"""Kubernetes quantities (`500m`, `1Gi`) as numbers, and what a pod asks for in all.

Engines count with this on every pass, so it imports nothing but the standard library and msgspec.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

GPU = "nvidia.com/gpu"

_NUMBER = r"[0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20}"
_SUFFIX = r"[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2}"
_QUANTITY = re.compile(
    rf"(?P<sign>[+-]?)(?P<number>{_NUMBER})(?P<suffix>{_SUFFIX})?",
    re.ASCII,
)
#: What `parse` takes of text, for a schema, which can say all but how large it is.
PATTERN = rf"^\+?({_NUMBER})({_SUFFIX})?$"
_SCALES = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_SCALES |= {
    suffix: Decimal(10) ** power
    for suffix, power in {
        "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
    }.items()
}  # fmt: skip
#: What Kubernetes can hold in a quantity.
_LARGEST = Decimal(2**63 - 1)


class Resources(msgspec.Struct, frozen=True):
    """What one pod asks for. Nothing asked for counts as nothing, as on a cluster."""

    cpu: float = 0.0
    memory: int = 0
    gpus: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            round(self.cpu + other.cpu, 9), self.memory + other.memory, self.gpus + other.gpus
        )

    def __or__(self, other: Resources) -> Resources:
        """The larger of each."""
        return Resources(
            max(self.cpu, other.cpu), max(self.memory, other.memory), max(self.gpus, other.gpus)
        )

    def times(self, count: int) -> Resources:
        return Resources(round(self.cpu * count, 9), self.memory * count, self.gpus * count)


def parse(value: object) -> Decimal:
    """Any quantity as a number. ValueError says what is right instead."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('write a number with an optional suffix, such as 2, "500m" or "1Gi"')
    text = written(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise ValueError(_hint(text))
    suffix = match["suffix"] or ""
    number = Decimal(match["number"])
    scale = _SCALES.get(suffix)
    amount = number.scaleb(int(suffix[1:])) if scale is None else number * scale
    if match["sign"] == "-" and amount:
        raise ValueError("it cannot be negative")
    if amount > _LARGEST:
        raise ValueError("it is larger than Kubernetes can count (2^63-1)")
    return amount


def written(value: str | float) -> str:
    """As text that `parse` takes: a number without its exponent, to the nano as on a cluster."""
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    return f"{value:.9f}".rstrip("0").rstrip(".")


def _hint(text: str) -> str:
    if kilo := re.fullmatch(r"([0-9.]+)\s*K", text):
        return f'did you mean "{kilo[1]}k" (times 1,000) or "{kilo[1]}Ki" (times 1,024)?'
    found = re.fullmatch(
        r"([0-9.]+)\s*(?:([kmgtpe])b?|([KMGTPE])B|([kKMGTPE])ib?|B|[Cc]ores?)", text
    )
    if found is not None:
        letter = next((group for group in found.groups()[1:] if group), "")
        right = f"{found[1]}{letter.upper()}i" if letter else found[1]
        return (
            f'did you mean "{right}"? Suffixes are m, k, M, G, T, P, E and Ki, Mi, Gi, Ti, Pi, Ei'
        )
    return 'write a number with an optional suffix, such as 2, "500m" or "1Gi"'


def parse_cpu(value: object) -> float:
    """Cores: `500m` is 0.5."""
    return float(round(parse(value), 9))


def parse_memory(value: object) -> int:
    """Bytes, rounded up: `1Gi` is 1073741824."""
    return math.ceil(parse(value))


def parse_count(value: object) -> int:
    """Whole things, such as GPUs."""
    amount = parse(value)
    if amount != amount.to_integral_value():
        raise ValueError("it must be a whole number: a GPU cannot be split")
    return int(amount)


def resources(template: dict[str, Any]) -> Resources:
    """What a pod of this template asks for, as the Kubernetes scheduler would count it.

    Requests, or limits where a container has no request; containers run together and add up, init
    containers run before them and only raise the total to the largest of theirs; init containers
    that restart always (sidecars) stay and add up too.
    """
    pod = template.get("spec") or {}
    total = _summed(pod, _asked)
    whole = pod.get("resources")
    if not whole:
        return total
    named = {**(whole.get("limits") or {}), **(whole.get("requests") or {})}
    asked = _asked(whole)
    return Resources(
        asked.cpu if "cpu" in named else total.cpu,
        asked.memory if "memory" in named else total.memory,
        total.gpus,
    )


def limits(template: dict[str, Any]) -> Resources:
    """The most that a pod of this template may use, as a kubelet bounds a whole pod: summed up as
    above, and only what every container names a limit of. 0: no limit."""
    pod = template.get("spec") or {}
    total = _summed(pod, _allowed)
    containers = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    named = [set((c.get("resources") or {}).get("limits") or ()) for c in containers]
    bounded = set[str]().union(*named).intersection(*named)
    whole = _allowed(pod.get("resources"))
    return Resources(
        whole.cpu or (total.cpu if "cpu" in bounded else 0.0),
        whole.memory or (total.memory if "memory" in bounded else 0),
        total.gpus,
    )


def _summed(pod: dict[str, Any], amount: Callable[[dict[str, Any] | None], Resources]) -> Resources:
    """Of containers, which run together, and init containers, which run before them or beside."""
    sidecars = start = Resources()
    for container in pod.get("initContainers") or ():
        own = amount(container.get("resources"))
        if container.get("restartPolicy") == "Always":
            sidecars += own
            start |= sidecars
        else:
            start |= sidecars + own
    run = sidecars
    for container in pod.get("containers") or ():
        run += amount(container.get("resources"))
    return run | start


def _asked(wanted: dict[str, Any] | None) -> Resources:
    wanted = wanted or {}
    return _amounts({**(wanted.get("limits") or {}), **(wanted.get("requests") or {})})


def _allowed(wanted: dict[str, Any] | None) -> Resources:
    return _amounts((wanted or {}).get("limits") or {})


def _amounts(named: dict[str, Any]) -> Resources:
    return Resources(
        parse_cpu(named.get("cpu", 0)),
        parse_memory(named.get("memory", 0)),
        parse_count(named.get(GPU, 0)),
    )
