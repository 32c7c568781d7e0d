"""What can go wrong between us and an API server, one type per thing a caller can do about it."""

from __future__ import annotations

import msgspec

from regatta.engines.kubernetes.access.config_errors import ConfigError, KubeError

__all__ = ["ApiError", "ConfigError", "KubeError", "Stalled", "Unreachable", "refusal"]


class Unreachable(KubeError):
    """No complete answer came. A write may or may not have happened: look before repeating it."""


class Stalled(Unreachable):
    """The connection stands but has been silent for longer than a living server would be."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    """Kubernetes' `Status` object, as far as it explains a refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiError(KubeError):
    """The API server answered, and the answer is no."""

    def __init__(
        self, status: int, reason: str, message: str, details: Details | None = None
    ) -> None:
        super().__init__(f"{message} ({status} {reason})" if reason else f"{message} ({status})")
        self.status = status
        #: Kubernetes' machine-readable word: AlreadyExists, Conflict, Expired, Invalid ...
        self.reason = reason
        self.message = message
        self.details = details or Details()
        #: Seconds after which the server would like to be asked again, where it said so.
        self.retry_after: float | None = None

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def already_exists(self) -> bool:
        """Something of that name is there; whose it is, only a look can tell."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """A precondition (resourceVersion, uid) did not hold."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def gone(self) -> bool:
        """A resourceVersion or a continue token is too old: list again."""
        return self.status == 410

    @property
    def forbidden(self) -> bool:
        return self.status == 403

    @property
    def invalid(self) -> bool:
        """The object itself is wrong; sending it again changes nothing."""
        return self.status in (400, 422)

    @property
    def throttled(self) -> bool:
        return self.status == 429


_decode_status = msgspec.json.Decoder(_Status).decode


def refusal(status: int, body: bytes, asked: str) -> ApiError:
    """The error that an answer of 400 or above means. `asked` is the request, for the message."""
    try:
        said = _decode_status(body)
    except msgspec.DecodeError:
        said = _Status()
    text = said.message or body[:300].decode("utf-8", "replace").strip() or "no explanation given"
    # A watch's ERROR event carries its code inside an answer that began as 200.
    return ApiError(status or said.code, said.reason, f"{asked}: {text}", said.details)
