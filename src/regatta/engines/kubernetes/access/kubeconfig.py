"""Kubeconfig files: reading them, and merging several as kubectl does.

The first file that names a cluster, user or context wins, and so does the first `current-context`.
Relative paths are relative to the file that holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from regatta.engines.kubernetes.access.config_errors import ConfigError


class Cluster(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[dict[str, Any], ...] | None = None


class ExecVariable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[ExecVariable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, tuple[str, ...]] | None = msgspec.field(
        default=None, name="as-user-extra"
    )
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None


class Context(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User = User()


class NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context = Context()


class _File(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    current_context: str = ""
    # `kubectl config` writes null where there is nothing.
    clusters: tuple[NamedCluster, ...] | None = None
    users: tuple[NamedUser, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None


class Kubeconfig:
    """Several files as one. `where` remembers which folder a cluster's or user's paths mean."""

    def __init__(self) -> None:
        self.sources: list[Path] = []
        self.current_context = ""
        self.clusters: dict[str, tuple[Cluster, Path]] = {}
        self.users: dict[str, tuple[User, Path]] = {}
        self.contexts: dict[str, Context] = {}

    def add(self, path: Path, file: _File) -> None:
        self.sources.append(path)
        self.current_context = self.current_context or file.current_context
        folder = path.parent
        for cluster in file.clusters or ():
            self.clusters.setdefault(cluster.name, (cluster.cluster, folder))
        for user in file.users or ():
            self.users.setdefault(user.name, (user.user, folder))
        for context in file.contexts or ():
            self.contexts.setdefault(context.name, context.context)

    @property
    def named(self) -> str:
        return ":".join(map(str, self.sources))

    def context(self, name: str | None) -> tuple[str, Context]:
        wanted = name or self.current_context
        if not wanted:
            raise ConfigError(
                f"{self.named} sets no current-context; choose one: "
                f"`kubectl config use-context NAME`, or name it ({_choices(self.contexts)})"
            )
        found = self.contexts.get(wanted)
        if found is None:
            raise ConfigError(
                f"{self.named} has no context {wanted!r}; it has {_choices(self.contexts)}"
            )
        return wanted, found

    def cluster(self, context: str, name: str) -> tuple[Cluster, Path]:
        if name not in self.clusters:
            raise ConfigError(
                f"context {context!r} names the cluster {name!r}, which {self.named} does not "
                f"define; it has {_choices(self.clusters)}"
            )
        return self.clusters[name]

    def user(self, context: str, name: str) -> tuple[User, Path]:
        if not name:  # Legal: an API server that lets anybody in, or a proxy that signs for us.
            return User(), Path("/")
        if name not in self.users:
            raise ConfigError(
                f"context {context!r} names the user {name!r}, which {self.named} does not "
                f"define; it has {_choices(self.users)}"
            )
        return self.users[name]


def has_current_context(paths: Sequence[Path]) -> bool:
    """Whether any of these files says which cluster is meant."""
    return bool(_merged(paths).current_context)


def read_kubeconfigs(paths: Sequence[Path]) -> Kubeconfig:
    """Files that do not exist are passed over, as kubectl does, unless none does."""
    merged = _merged(paths)
    if not merged.sources:
        looked = ", ".join(map(str, paths)) or "nowhere"
        raise ConfigError(
            f"there is no kubeconfig (looked at {looked}); set KUBECONFIG or copy one to "
            "~/.kube/config"
        )
    return merged


def _merged(paths: Sequence[Path]) -> Kubeconfig:
    merged = Kubeconfig()
    for path in paths:
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as bad:
            raise ConfigError(f"cannot read the kubeconfig {path}: {bad}") from bad
        merged.add(path.absolute(), _parse(path, text))
    return merged


def _parse(path: Path, text: str) -> _File:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Timestamps and the like are not in this format, so YAML's own types are enough.
        content = yaml.load(text, Loader=loader)
        return msgspec.convert(content or {}, _File)
    except yaml.YAMLError as bad:
        raise ConfigError(f"the kubeconfig {path} is not YAML: {bad}") from bad
    except msgspec.ValidationError as bad:
        raise ConfigError(f"the kubeconfig {path} is not as kubectl writes it: {bad}") from bad


def _choices(known: Sequence[str] | dict[str, Any]) -> str:
    return ", ".join(sorted(known)) or "none"
