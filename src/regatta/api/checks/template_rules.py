"""What a pod template must mean, beyond its shape: the rules an API server would refuse it for.

A refusal at submit is worth more than a pod that cannot be created later, and the local engine has
no API server to ask. Every function tolerates a template of the wrong shape: that is told already.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Generator, Iterator
from decimal import Decimal
from typing import Any

from regatta.api import quantity
from regatta.api.checks import names
from regatta.api.checks.suggestions import closest, did_you_mean, listed, shown, shown_key
from regatta.api.problems import Problem
from regatta.api.source.limits import MAX_STRING
from regatta.api.source.paths import join

#: A replica that is asked to end may write down what it has learnt; it does not train on.
LONGEST_GRACE = 7 * 24 * 3600
#: Of a path, on Linux; and as deep as anybody has ever made folders.
LONGEST_PATH, DEEPEST = 4095, 200
#: Fields with a fixed set of words, by their last step. The CRD has them as enums.
POD_WORDS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
CONTAINER_WORDS = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}


def check_meaning(template: dict[str, Any], path: str) -> Iterator[Problem]:
    yield from _check_metadata(_map(template.get("metadata")), join(path, "metadata"))
    pod, place = _map(template.get("spec")), join(path, "spec")
    if "containers" in template and "containers" not in pod:
        right = join(place, "containers")
        yield Problem(join(path, "containers"), f"it belongs under the pod's spec; write {right}")
    elif not any(True for _ in _items(pod, "containers", place)):
        found = "" if "containers" not in pod else f"found {shown(pod['containers'])}; "
        yield Problem(
            join(place, _containers_as_spelt(pod)),
            f"{found or 'missing; '}a pod needs at least one container, with a name and a command",
        )
    yield from _check_words(pod, POD_WORDS, place)
    yield from _check_grace(pod.get("terminationGracePeriodSeconds"), place)
    volumes = yield from _check_volumes(pod, place)
    seen: dict[str, str] = {}
    for key in ("initContainers", "containers"):
        for container, at in _items(pod, key, place):
            yield from _check_name(container, at, "container", seen)
            yield from _check_container(container, at, volumes)
    yield from _check_resources(_map(pod.get("resources")), join(place, "resources"))


def _check_grace(seconds: object, path: str) -> Iterator[Problem]:
    if type(seconds) is int and not 0 <= seconds <= LONGEST_GRACE:
        yield Problem(
            join(path, "terminationGracePeriodSeconds"),
            f"found {seconds}; write how many seconds a replica has to end by itself, from 0 to "
            f"{LONGEST_GRACE:,} (a week)",
        )


def _containers_as_spelt(pod: dict[str, Any]) -> str:
    """A misspelt name is told of already, as a matter of shape."""
    known = ("initContainers", "ephemeralContainers")
    near = (key for key in pod if key not in known and closest(key, ["containers"]))
    return "containers" if "containers" in pod else next(near, "containers")


def _check_metadata(metadata: dict[str, Any], path: str) -> Iterator[Problem]:
    yield from check_labels(metadata.get("labels"), join(path, "labels"))
    for key in _map(metadata.get("annotations")):
        if message := names.about_key(key):
            yield Problem(join(join(path, "annotations"), key), message)


def check_labels(labels: object, path: str) -> Iterator[Problem]:
    for key, value in _map(labels).items():
        message = names.about_key(key)
        if message is None and isinstance(value, str):
            message = names.about_label_value(value)
        if message:
            yield Problem(join(path, key), message)


def _check_container(
    container: dict[str, Any], path: str, volumes: dict[str, str]
) -> Iterator[Problem]:
    if not container.get("image") and not container.get("command"):
        yield Problem(
            path,
            'there is nothing to run; add a command, such as ["python", "train.py"], or an image',
        )
    yield from _check_words(container, CONTAINER_WORDS, path)
    for variable, at in _items(container, "env", path):
        name = variable.get("name")
        message = names.about_variable(name) if isinstance(name, str) else None
        if message:
            yield Problem(join(at, "name"), message)
        if variable.get("value") and variable.get("valueFrom"):
            yield Problem(at, "it has both value and valueFrom; keep one")
        written = f"{name}={variable.get('value') or ''}"
        yield from _check_length(written, join(at, "value"), f"{shown_key(str(name))} with it")
    for key in ("command", "args"):
        words = container.get(key)
        for i, word in enumerate(words if isinstance(words, list) else ()):
            yield from _check_length(word, f"{join(path, key)}[{i}]", "it")
    for port, at in _items(container, "ports", path):
        number = port.get("containerPort")
        if type(number) is int and not 0 < number < 65536:
            yield Problem(join(at, "containerPort"), f"found {number}; ports go from 1 to 65535")
    yield from _check_mounts(container, path, volumes)
    yield from _check_resources(_map(container.get("resources")), join(path, "resources"))


def _check_length(word: object, path: str, what: str) -> Iterator[Problem]:
    if isinstance(word, str) and (size := len(word.encode(errors="surrogatepass"))) >= MAX_STRING:
        yield Problem(
            path,
            f"{what} is {size:,} bytes long, and Linux gives a program no variable or argument of "
            f"more than {MAX_STRING - 1:,}; write it to a file, and name the file here",
        )


def _check_mounts(
    container: dict[str, Any], path: str, volumes: dict[str, str]
) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for mount, at in _items(container, "volumeMounts", path):
        name, target = mount.get("name"), mount.get("mountPath")
        if isinstance(name, str) and name not in volumes:
            there = (
                f"the volumes are {listed(map(shown_key, volumes))}"
                if volumes
                else "the pod has no volumes"
            )
            yield Problem(
                join(at, "name"),
                f"there is no volume {shown(name)}: {there}; "
                f"{did_you_mean(name, volumes).rstrip() or 'add it under the volumes of the pod'}",
            )
        if not isinstance(target, str):
            continue
        if not target.startswith("/"):
            yield Problem(
                join(at, "mountPath"), f"found {shown(target)}; write a path that starts with /"
            )
        elif len(target) > LONGEST_PATH or target.count("/") > DEEPEST:
            yield Problem(
                join(at, "mountPath"),
                f"it has {len(target):,} characters and {target.count('/'):,} levels; write at "
                f"most {LONGEST_PATH:,} and {DEEPEST}",
            )
        elif not posixpath.normpath(target).strip("/"):
            yield Problem(
                join(at, "mountPath"),
                f"found {shown(target)}: nothing of the system would be left to run; name a folder "
                "in it, such as /data",
            )
        if target in taken:
            yield Problem(
                join(at, "mountPath"), f"{shown(target)} is mounted already by {taken[target]}"
            )
        taken.setdefault(target, at)


def _check_volumes(pod: dict[str, Any], path: str) -> Generator[Problem, None, dict[str, str]]:
    """Yields problems, returns where each volume stands."""
    volumes: dict[str, str] = {}
    for volume, at in _items(pod, "volumes", path):
        yield from _check_name(volume, at, "volume", volumes)
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            yield Problem(at, f"a volume has one source; found {listed(map(shown_key, sources))}")
        host = _map(volume.get("hostPath"))
        if host and not str(host.get("path", "")).startswith("/") and "path" in host:
            yield Problem(
                f"{at}.hostPath.path",
                f"found {shown(host['path'])}; write a path that starts with /",
            )
        empty = _map(volume.get("emptyDir"))
        yield from _check_words(empty, {"medium": ("Memory", "HugePages", "")}, f"{at}.emptyDir")
        yield from _check_quantity(empty.get("sizeLimit"), f"{at}.emptyDir.sizeLimit")
    return volumes


def _check_resources(resources: dict[str, Any], path: str) -> Iterator[Problem]:
    amounts: dict[tuple[str, str], Any] = {}
    for kind in ("requests", "limits"):
        for name, value in _map(resources.get(kind)).items():
            at = join(join(path, kind), name)
            whole = name == quantity.GPU
            if isinstance(value, dict | list | bool):
                continue  # the schema has said so
            if message := _about_quantity(value, quantity.parse_count if whole else quantity.parse):
                yield Problem(at, message)
                continue
            amounts[kind, name] = quantity.parse(value)
            if name == "memory":
                yield from _check_memory(kind, value, amounts[kind, name], at)
            if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
                hint = did_you_mean(name, [*_NATIVE, quantity.GPU]) or _gpu_hint(name)
                yield Problem(at, f"there is no such resource; {hint}Known: {listed(_NATIVE)}, or "
                              f"a device with its domain, such as {quantity.GPU}")  # fmt: skip
    for (kind, name), amount in amounts.items():
        limit = amounts.get(("limits", name))
        if kind != "requests":
            continue
        at = join(join(path, "requests"), name)
        if limit is None:
            if "/" in name:
                yield Problem(at, "a device needs a limit; write the same number under limits")
            continue
        said = (
            f"{_map(resources['requests'])[name]}, and the limit {_map(resources['limits'])[name]}"
        )
        if amount > limit:
            yield Problem(at, f"the request is {said}; a request cannot be above its limit")
        elif amount != limit and "/" in name:
            yield Problem(at, f"the request is {said}; for devices both must be the same")


def _check_memory(kind: str, value: object, amount: Decimal, at: str) -> Iterator[Problem]:
    which = "m is a thousandth; mebibytes are Mi, such as 64Mi"
    if kind == "limits" and 0 < amount < PAGE:
        yield Problem(at, f"found {shown(value)}, and nothing can run in less than a page "
                      f"({PAGE} bytes): without a suffix these are bytes, {which}")  # fmt: skip
    elif amount % 1:
        yield Problem(at, f"{value} is less than whole bytes: {which}", "warning")


#: What the kernel counts memory in. Larger pages only raise the least that works.
PAGE = 4096
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def _gpu_hint(name: str) -> str:
    return f"did you mean {quantity.GPU}? " if "gpu" in name.lower() else ""


def _check_quantity(value: object, path: str) -> Iterator[Problem]:
    if value is not None and (message := _about_quantity(value, quantity.parse)):
        yield Problem(path, message)


def _about_quantity(value: object, parse: Callable[[object], object]) -> str | None:
    if isinstance(value, dict | list | bool):
        return None  # the schema has said so
    try:
        parse(value)
    except ValueError as error:
        return f"found {shown(value)}; {error}"
    return None


def _check_name(
    item: dict[str, Any], path: str, what: str, seen: dict[str, str]
) -> Iterator[Problem]:
    name = item.get("name")
    if not isinstance(name, str):
        return
    if message := names.about_label(name, f"a {what}'s name"):
        yield Problem(join(path, "name"), message)
    if name in seen:
        yield Problem(join(path, "name"), f"{shown(name)} is taken already by {seen[name]}")
    seen.setdefault(name, path)


def _check_words(
    item: dict[str, Any], words: dict[str, tuple[str, ...]], path: str
) -> Iterator[Problem]:
    for key, allowed in words.items():
        value = item.get(key)
        if isinstance(value, str) and value not in allowed:
            options = [word for word in allowed if word]
            yield Problem(
                join(path, key),
                f"found {shown(value)}; {did_you_mean(value, options)}Allowed: "
                f"{listed(options, 'or')}",
            )


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(holder: dict[str, Any], key: str, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    found = holder.get(key)
    for i, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict):
            yield item, f"{join(path, key)}[{i}]"
