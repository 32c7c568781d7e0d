"""A container's environment: what this engine gives, what the job shares, what the user wrote.

Later layers win: engine, then `envFrom` in order, then `env` in order. `$(VAR)` is expanded as
Kubernetes does it: from what the pod itself defines, left alone where nothing does, `$$` for `$`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from regatta.api import quantity
from regatta.api.problems import Problem
from regatta.api.source.limits import MAX_STRINGS
from regatta.controller.environment.references import TOO_LONG, TooLong, expand
from regatta.engines.local.store.secrets_file import NONE, Secrets

#: All that a replica inherits of the shell that submitted it.
INHERITED = frozenset(
    {"PATH", "VIRTUAL_ENV", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
)


#: What the client of a container runtime reads besides: where its engine, its settings, its store
#: and its credentials are, and the way to a registry. It is for the client; no container sees it.
_OF_CLIENTS = frozenset(
    {
        "DBUS_SESSION_BUS_ADDRESS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "REGISTRY_AUTH_FILE",
        "SSH_AUTH_SOCK", "SSL_CERT_DIR", "SSL_CERT_FILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
        "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
_OF_CLIENTS_BEGIN = ("CONTAINERS_", "CONTAINER_", "DOCKER_", "PODMAN_", "STORAGE_")


def inherited(shell: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in shell.items() if k in INHERITED or k.startswith("LC_")}


def inherited_by_client(shell: Mapping[str, str]) -> dict[str, str]:
    """What a container runtime's client has of the shell, so that it does as it does there."""
    return inherited(shell) | {
        name: value
        for name, value in shell.items()
        if name.upper() in _OF_CLIENTS or name.startswith(_OF_CLIENTS_BEGIN)
    }


TOO_MUCH = (
    f"all of it together is more than the {MAX_STRINGS // 1024**2} MiB that Linux gives a program; "
    "write it to a file"
)


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What `fieldRef` and `resourceFieldRef` can ask about."""

    manifest: dict[str, Any]
    uid: str
    address: str

    def field(self, path: str) -> str | None:
        """None: there is no such field here."""
        metadata = self.manifest.get("metadata") or {}
        spec = self.manifest.get("spec") or {}
        subscript = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        if subscript is not None:
            return str((metadata.get(subscript[1]) or {}).get(subscript[2], ""))
        known = {
            "metadata.name": metadata.get("name", ""),
            "metadata.namespace": metadata.get("namespace", "default"),
            "metadata.uid": self.uid,
            "spec.nodeName": os.uname().nodename,
            "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
            "status.hostIP": self.address,
            "status.hostIPs": self.address,
            "status.podIP": self.address,
            "status.podIPs": self.address,
        }
        found = known.get(path)
        return None if found is None else str(found)

    def resource(self, name: str, container: dict[str, Any], divisor: object) -> str | None:
        """`limits.cpu` and the like, rounded up to whole divisors; None: no such resource."""
        kind, _, resource = name.partition(".")
        if kind not in ("limits", "requests") or resource not in ("cpu", "memory"):
            return None
        asked = container.get("resources") or {}
        amount = (asked.get(kind) or {}).get(resource) or (asked.get("limits") or {}).get(resource)
        if amount is None:  # then the whole machine is the limit
            whole = os.cpu_count() or 1
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            amount = whole if resource == "cpu" else memory
        unit = quantity.parse(divisor or 1) or 1
        return str(math.ceil(quantity.parse(amount) / unit))


class Variables:
    """Builds one container's variables and remembers what could not be had."""

    def __init__(
        self,
        facts: PodFacts,
        environments: Mapping[str, Mapping[str, str]],
        path: str,
        secrets: Secrets = NONE,
    ) -> None:
        self._facts = facts
        self._environments = environments
        self._secrets = secrets
        #: Where the container stands: `spec.containers[0]`.
        self._path = path
        self.problems: list[Problem] = []
        #: Variables whose values only the supervisor reads: Secret and key of each.
        self.secret: dict[str, tuple[str, str]] = {}

    def build(self, container: dict[str, Any]) -> dict[str, str]:
        """What the pod itself defines, expanded."""
        built: dict[str, str] = {}
        size = 0
        theirs = 0  # the job's own environment comes first and is not in the user's file
        for source in container.get("envFrom") or ():
            built.update(self._shared(source, f"{self._path}.envFrom[{theirs}]"))
            theirs += (source.get("configMapRef") or {}).get("name") not in self._environments
        for variable in container.get("env") or ():
            path = f"{self._path}.env[{variable['name']}]"
            if (reference := self._secret_of(variable)) is not None:
                self.secret[variable["name"]] = reference
                continue
            if variable.get("valueFrom"):
                value = self._referred(variable["valueFrom"], container, path + ".valueFrom")
            else:
                value = self._expanded(str(variable.get("value") or ""), built, path + ".value")
            if value is not None:
                built[variable["name"]] = value
                size += len(value)
            if size > MAX_STRINGS:
                self.problems.append(Problem(f"{self._path}.env", TOO_MUCH))
                break
        return built

    def words(self, container: dict[str, Any], key: str, variables: Mapping[str, str]) -> list[str]:
        """The container's command or args, expanded."""
        found: list[str] = []
        size = 0
        for number, word in enumerate(container.get(key) or ()):
            path = f"{self._path}.{key}[{number}]"
            found.append(self._expanded(str(word), variables, path) or "")
            size += len(found[-1])
            if size > MAX_STRINGS:
                self.problems.append(Problem(f"{self._path}.{key}", TOO_MUCH))
                break
        return found

    def _expanded(self, text: str, variables: Mapping[str, str], path: str) -> str | None:
        try:
            return expand(text, variables)
        except TooLong:
            self.problems.append(Problem(path, TOO_LONG))
            return None

    def _shared(self, source: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
        prefix = source.get("prefix") or ""
        for kind, word in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            reference = source.get(kind)
            if not reference:
                continue
            data = self._environments.get(reference.get("name", ""))
            if data is not None and kind == "configMapRef":
                for name, value in data.items():
                    yield prefix + name, value
            elif not reference.get("optional"):
                self._missing(f"{path}.{kind}", word, reference.get("name", ""))

    def _referred(self, source: dict[str, Any], container: dict[str, Any], path: str) -> str | None:
        if field := source.get("fieldRef"):
            return self._known(self._facts.field(field["fieldPath"]), path + ".fieldRef.fieldPath")
        if resource := source.get("resourceFieldRef"):
            value = self._facts.resource(
                resource["resource"], self._named(resource, container), resource.get("divisor")
            )
            return self._known(value, path + ".resourceFieldRef.resource")
        for kind, word in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if reference := source.get(kind):
                data = self._environments.get(reference.get("name", ""), {})
                if kind == "configMapKeyRef" and reference.get("key") in data:
                    return data[reference["key"]]
                if not reference.get("optional"):
                    self._missing(f"{path}.{kind}", word, reference.get("name", ""))
                return None
        self.problems.append(Problem(path, "is of a kind that this engine does not know"))
        return None

    def _secret_of(self, variable: dict[str, Any]) -> tuple[str, str] | None:
        """What of the job's own secrets it refers to."""
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
        name, key = reference.get("name", ""), reference.get("key", "")
        return (name, key) if self._secrets.has(name, key) else None

    def _named(self, resource: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
        name = resource.get("containerName") or container.get("name")
        spec = self._facts.manifest.get("spec") or {}
        everybody = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        return next((c for c in everybody if c.get("name") == name), container)

    def _known(self, value: str | None, path: str) -> str | None:
        if value is None:
            self.problems.append(
                Problem(
                    path,
                    "cannot be answered on this machine; metadata.name, .namespace, .uid, "
                    ".labels['x'], .annotations['x'], spec.nodeName, status.podIP, status.hostIP, "
                    "and limits or requests of cpu and memory can",
                )
            )
        return value

    def _missing(self, path: str, word: str, name: str) -> None:
        self.problems.append(
            Problem(
                path,
                f"refers to {word} {name!r}, and there are none on this machine; "
                "write the value into env, give it with --env NAME=VALUE or --env-file, "
                "or mark the reference optional: true",
            )
        )
