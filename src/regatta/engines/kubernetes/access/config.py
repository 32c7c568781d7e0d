"""Where the cluster is and who we are there: from a kubeconfig, or from inside a pod."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from regatta.engines.kubernetes.access.config_errors import ConfigError
from regatta.engines.kubernetes.access.credentials import (
    ConfiguredCredentials,
    Credentials,
    Headers,
    basic,
)
from regatta.engines.kubernetes.access.exec_plugin import GROUP, ExecCredentials, ExecSpec
from regatta.engines.kubernetes.access.fresh_file import FRESH_SECONDS, FreshFile, content
from regatta.engines.kubernetes.access.kubeconfig import (
    Cluster,
    Exec,
    User,
    has_current_context,
    read_kubeconfigs,
)
from regatta.http.failures import Misconfigured
from regatta.http.proxies import checked, proxy_for
from regatta.http.tls import Trust

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ClusterTrust:
    """Who may call themselves the API server."""

    #: PEM certificates, or a file of them; None for the machine's own store.
    authority: bytes | FreshFile | None = None
    insecure: bool = False
    #: The name that the certificate must carry, where it is not the address we dial.
    server_name: str = ""

    @property
    def pem(self) -> bytes | None:
        return None if self.authority is None else content(self.authority)

    def current(self) -> Trust:
        """As it stands now: files are read again as they rotate."""
        return Trust(self.pem, self.insecure)


#: The machine's own store decides, as for any web page.
COMMON_TRUST = ClusterTrust()


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Everything a client needs to know about one cluster."""

    server: str
    credentials: Credentials
    trust: ClusterTrust = COMMON_TRUST
    #: Where objects go when nobody names a namespace.
    namespace: str = "default"
    #: The kubeconfig's context; empty where a pod's own account is used.
    context: str = ""
    proxy: str = ""
    #: Which files say all this, or whose account.
    source: str = ""

    @property
    def how(self) -> str:
        """By what we come to be there, for people."""
        return f"context {self.context} of {self.source}" if self.context else self.source


def load_access(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    fresh_seconds: float = FRESH_SECONDS,
) -> ClusterAccess:
    """The file that was named, else `KUBECONFIG`, else `~/.kube/config`; as kubectl does, this
    pod's own account where those name no cluster."""
    if kubeconfig is not None:
        if not kubeconfig.exists():
            raise ConfigError(f"there is no kubeconfig at {kubeconfig}")
        return from_kubeconfig([kubeconfig], context, environment, fresh_seconds)
    files = _usual_files(environment)
    inside = context is None and in_a_pod(environment, service_account)
    if inside and not has_current_context(files):
        return from_service_account(environment, service_account, fresh_seconds)
    return from_kubeconfig(files, context, environment, fresh_seconds)


def _usual_files(environment: Mapping[str, str]) -> list[Path]:
    listed = [Path(p) for p in environment.get("KUBECONFIG", "").split(os.pathsep) if p]
    if listed:
        return listed
    try:
        return [Path(environment.get("HOME") or Path.home()) / ".kube" / "config"]
    except RuntimeError:  # a user whom the system does not know, as in many an image
        return []


def in_a_pod(environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> bool:
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (service_account / "token").exists()


def from_service_account(
    environment: Mapping[str, str],
    folder: Path = SERVICE_ACCOUNT,
    fresh_seconds: float = FRESH_SECONDS,
) -> ClusterAccess:
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = environment.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        namespace = (folder / "namespace").read_text("utf-8").strip()
    except OSError:
        namespace = ""
    return ClusterAccess(
        server=server,
        credentials=ConfiguredCredentials(
            token_file=FreshFile(folder / "token", max_age=fresh_seconds)
        ),
        trust=ClusterTrust(FreshFile(folder / "ca.crt", max_age=fresh_seconds)),
        namespace=namespace or "default",
        proxy=_proxy(server, environment),
        source=f"this pod's own account ({folder})",
    )


def from_kubeconfig(
    paths: list[Path],
    context: str | None,
    environment: Mapping[str, str],
    fresh_seconds: float = FRESH_SECONDS,
) -> ClusterAccess:
    merged = read_kubeconfigs(paths)
    name, chosen = merged.context(context)
    cluster, cluster_folder = merged.cluster(name, chosen.cluster)
    user, user_folder = merged.user(name, chosen.user)
    server = cluster.server.rstrip("/")
    if not _is_address(server):
        raise ConfigError(
            f"cluster {chosen.cluster!r} has the server {cluster.server!r}; it should be a URL "
            "such as https://10.0.0.1:6443"
        )
    reader = _Reader(fresh_seconds)
    trust = reader.trust(chosen.cluster, cluster, cluster_folder)
    return ClusterAccess(
        server=server,
        credentials=reader.credentials(chosen.user, user, user_folder, cluster, trust),
        trust=trust,
        namespace=chosen.namespace or "default",
        context=name,
        proxy=_proxy(server, environment, cluster.proxy_url, chosen.cluster),
        source=merged.named,
    )


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A port that is no number, brackets around no address.
        return False


def _proxy(
    server: str, environment: Mapping[str, str], configured: str = "", cluster: str = ""
) -> str:
    try:
        if configured:
            return checked(configured, f"proxy-url of cluster {cluster!r}")
        return proxy_for(server, environment)
    except Misconfigured as wrong:
        raise ConfigError(str(wrong)) from wrong


class _Reader:
    """Turns a kubeconfig's words into what a connection uses."""

    def __init__(self, fresh_seconds: float) -> None:
        self._fresh = fresh_seconds

    def trust(self, name: str, cluster: Cluster, folder: Path) -> ClusterTrust:
        return ClusterTrust(
            self._source(
                cluster.certificate_authority_data,
                cluster.certificate_authority,
                folder,
                f"certificate-authority-data of cluster {name!r}",
            ),
            cluster.insecure_skip_tls_verify,
            cluster.tls_server_name,
        )

    def credentials(
        self, name: str, user: User, folder: Path, cluster: Cluster, trust: ClusterTrust
    ) -> Credentials:
        extra = _impersonation(name, user)
        if user.exec is not None:
            return ExecCredentials(_exec(name, user.exec, folder, cluster, trust), extra=extra)
        if user.auth_provider is not None:
            provider = user.auth_provider.get("name", "?")
            raise ConfigError(
                f"user {name!r} signs in with the auth-provider {provider!r}, which Kubernetes "
                "removed in 1.26; have your provider's tool write an exec plugin instead"
            )
        if user.username and not user.token:
            extra = (basic(user.username, user.password), *extra)
        certificate = self._source(
            user.client_certificate_data,
            user.client_certificate,
            folder,
            f"client-certificate-data of user {name!r}",
        )
        key = self._source(
            user.client_key_data, user.client_key, folder, f"client-key-data of user {name!r}"
        )
        if (certificate is None) != (key is None):
            given, missing = ("certificate", "key") if key is None else ("key", "certificate")
            raise ConfigError(
                f"user {name!r} has a client {given} but no client {missing}; add client-{missing} "
                f"or client-{missing}-data"
            )
        token_file = (
            FreshFile(folder / user.token_file, max_age=self._fresh) if user.token_file else None
        )
        return ConfiguredCredentials(
            token=user.token, token_file=token_file, certificate=certificate, key=key, extra=extra
        )

    def _source(self, data: str, path: str, folder: Path, field: str) -> bytes | FreshFile | None:
        """Inline data wins over a file, as in kubectl."""
        if data:
            try:
                return base64.b64decode(data, validate=False)
            except binascii.Error as bad:
                raise ConfigError(f"{field} is not base64: {bad}") from bad
        return FreshFile(folder / path, max_age=self._fresh) if path else None


def _impersonation(name: str, user: User) -> Headers:
    others = user.impersonate_groups or user.impersonate_extra or user.impersonate_uid
    if others and not user.impersonate:
        raise ConfigError(f"user {name!r} impersonates groups but nobody; add `as`")
    headers = [("Impersonate-User", user.impersonate)] if user.impersonate else []
    if user.impersonate_uid:
        headers.append(("Impersonate-Uid", user.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups or ()]
    for key, values in (user.impersonate_extra or {}).items():
        headers += [(f"Impersonate-Extra-{key}", value) for value in values]
    return tuple(headers)


def _exec(name: str, block: Exec, folder: Path, cluster: Cluster, trust: ClusterTrust) -> ExecSpec:
    if not block.command:
        raise ConfigError(f"user {name!r} has an exec plugin without a command")
    if block.api_version == f"{GROUP}/v1" and not block.interactive_mode:
        raise ConfigError(
            f"user {name!r}: an exec plugin of {GROUP}/v1 must say its interactiveMode "
            "(Never, IfAvailable or Always)"
        )
    if block.interactive_mode not in ("", "Never", "IfAvailable", "Always"):
        raise ConfigError(
            f"user {name!r}: interactiveMode is {block.interactive_mode!r}; it should be Never, "
            "IfAvailable or Always"
        )
    # A bare word is looked up in PATH; anything with a slash means a place.
    command = str(folder / block.command) if "/" in block.command else block.command
    return ExecSpec(
        user=name,
        api_version=block.api_version,
        command=command,
        args=block.args or (),
        env={variable.name: variable.value for variable in block.env or ()},
        install_hint=block.install_hint,
        interactive_mode=block.interactive_mode or "IfAvailable",
        cluster=_told(cluster, trust) if block.provide_cluster_info else None,
    )


def _told(cluster: Cluster, trust: ClusterTrust) -> dict[str, Any]:
    """What `provideClusterInfo` hands to the plugin."""
    told: dict[str, Any] = {"server": cluster.server}
    if cluster.tls_server_name:
        told["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        told["insecure-skip-tls-verify"] = True
    if pem := trust.pem:
        told["certificate-authority-data"] = base64.b64encode(pem).decode()
    if cluster.proxy_url:
        told["proxy-url"] = cluster.proxy_url
    for extension in cluster.extensions or ():
        if extension.get("name") == f"{GROUP}/exec":
            told["config"] = extension.get("extension")
    return told
