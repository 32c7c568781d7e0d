"""Credentials from an exec plugin, as cloud providers and single sign-on tools ship them.

The plugin is run when there is no credential yet, when the last one is about to expire, and when
the server refused it. Callers that need one at the same time wait for one run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from regatta.engines.kubernetes.access.config_errors import ConfigError
from regatta.engines.kubernetes.access.credentials import Credential, Headers, bearer
from regatta.http.tls import ClientCertificate

GROUP = "client.authentication.k8s.io"
API_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")

_MARGIN = timedelta(seconds=10)
_QUIET_SECONDS = 60.0
_TALKING_SECONDS = 300.0


class ExecSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The `exec` block of a kubeconfig's user, ready to run."""

    user: str
    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    install_hint: str = ""
    #: Never, IfAvailable or Always: whether the plugin may talk to a person.
    interactive_mode: str = "IfAvailable"
    #: What the plugin is told about the cluster; None unless it asked.
    cluster: dict[str, Any] | None = None


class _Issued(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Issued | None = None


def _wall_clock() -> datetime:
    return datetime.now(UTC)


class ExecCredentials:
    def __init__(
        self,
        spec: ExecSpec,
        *,
        extra: Headers = (),
        clock: Callable[[], datetime] = _wall_clock,
        is_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        if spec.api_version not in API_VERSIONS:
            raise ConfigError(
                f"user {spec.user!r}: its exec plugin speaks {spec.api_version!r}; Kubernetes has "
                f"{' and '.join(API_VERSIONS)}: have the tool that wrote this kubeconfig write it "
                "again"
            )
        self._spec = spec
        self._extra = extra
        self._clock = clock
        self._is_terminal = is_terminal
        self._lock = asyncio.Lock()
        self._held: Credential | None = None
        self._renew_at: datetime | None = None

    async def current(self) -> Credential:
        outdated = self._held
        if outdated is not None and self._good():
            return outdated
        async with self._lock:
            # Whoever had the lock before us may have brought a new one.
            if self._held is None or self._held is outdated:
                issued = await self._run()
                self._held = self._accept(issued)
                self._renew_at = self._when_to_renew(issued.expiration_timestamp)
            return self._held

    def refused(self) -> bool:
        self._held = None
        return True

    def _good(self) -> bool:
        return self._renew_at is None or self._clock() < self._renew_at

    def _when_to_renew(self, expires: datetime | None) -> datetime | None:
        """A little before it ends, so that it does not end on the way."""
        if expires is None:
            return None
        return expires - min(_MARGIN, (expires - self._clock()) / 10)

    def _accept(self, issued: _Issued) -> Credential:
        expires = issued.expiration_timestamp
        if expires is not None and expires <= self._clock():
            raise ConfigError(
                f"{self._named()} gave a credential that expired at {expires.isoformat()}; sign "
                "in again with that tool, and check this machine's clock"
            )
        certificate = None
        if issued.client_certificate_data and issued.client_key_data:
            certificate = ClientCertificate(
                issued.client_certificate_data.encode(), issued.client_key_data.encode()
            )
        elif issued.client_certificate_data or issued.client_key_data:
            raise ConfigError(
                f"{self._named()} gave only one of clientCertificateData and clientKeyData; "
                "both are needed"
            )
        if not issued.token and certificate is None:
            raise ConfigError(f"{self._named()} gave neither a token nor a client certificate")
        headers = (bearer(issued.token), *self._extra) if issued.token else self._extra
        return Credential(headers, certificate)

    async def _run(self) -> _Issued:
        spec = self._spec
        talks = spec.interactive_mode != "Never" and self._is_terminal()
        if spec.interactive_mode == "Always" and not talks:
            raise ConfigError(
                f"{self._named()} needs a person at a terminal, and there is none; use a "
                "kubeconfig with a token here"
            )
        request = {
            "apiVersion": spec.api_version,
            "kind": "ExecCredential",
            "spec": {
                "interactive": talks,
                **({"cluster": spec.cluster} if spec.cluster is not None else {}),
            },
        }
        environment = {
            **os.environ,
            **spec.env,
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(request).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                spec.command,
                *spec.args,
                env=environment,
                stdin=None if talks else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # A sign-in tool tells its user there which page to open.
                stderr=None if talks else asyncio.subprocess.PIPE,
            )
        except OSError as missing:
            hint = f"\n{spec.install_hint.strip()}" if spec.install_hint else ""
            raise ConfigError(
                f"{self._named()} cannot be run: {missing.strerror}; install it, or correct "
                f"`command` in the kubeconfig{hint}"
            ) from missing
        seconds = _TALKING_SECONDS if talks else _QUIET_SECONDS
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate()
        except TimeoutError:
            raise ConfigError(f"{self._named()} did not answer within {seconds:.0f} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            said = (err or b"").decode("utf-8", "replace").strip()[-1000:]
            raise ConfigError(
                f"{self._named()} failed with exit code {process.returncode}"
                + (f": {said}" if said else "")
            )
        return self._read(out)

    def _read(self, out: bytes) -> _Issued:
        try:
            answer = msgspec.json.decode(out, type=_ExecCredential)
        except msgspec.DecodeError as bad:
            raise ConfigError(
                f"{self._named()} printed something else than an ExecCredential: {bad}"
            ) from bad
        if answer.api_version != self._spec.api_version:
            raise ConfigError(
                f"{self._named()} answered in apiVersion {answer.api_version!r}, but the "
                f"kubeconfig says {self._spec.api_version!r}: write there what the plugin speaks"
            )
        if answer.status is None:
            raise ConfigError(f"{self._named()} printed an ExecCredential without a status")
        return answer.status

    def _named(self) -> str:
        return f"the exec plugin {Path(self._spec.command).name!r} of user {self._spec.user!r}"
