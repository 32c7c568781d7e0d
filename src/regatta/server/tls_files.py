"""A certificate and its key, looked at before a server starts with them."""

from __future__ import annotations

import ssl
from pathlib import Path

from regatta.api.errors import BadSetting


def require_pair(certificate: Path, key: Path) -> None:
    """Raises BadSetting that says which of the two files is wrong, and how."""
    asked: list[bool] = []

    def no_password() -> str:
        asked.append(True)
        return ""

    _require("--tls-cert", certificate, "CERTIFICATE-----", "certificate")
    _require("--tls-key", key, "PRIVATE KEY-----", "private key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, no_password)
    except (ssl.SSLError, ValueError) as odd:
        if asked:
            raise BadSetting(
                f"--tls-key: {key} has a password, which nobody is there to type; write it "
                f"without: `openssl pkey -in {key} -out FILE`"
            ) from None
        if getattr(odd, "reason", "") == "KEY_VALUES_MISMATCH":
            raise BadSetting(
                f"--tls-key: {key} is not the key of the first certificate in {certificate}; give "
                "the two that were made together, the server's own certificate first"
            ) from None
        why = getattr(odd, "reason", None) or odd
        raise BadSetting(
            f"--tls-cert {certificate} and --tls-key {key} cannot be read ({why}); write PEM files"
        ) from None


def _require(option: str, file: Path, marker: str, what: str) -> None:
    try:
        text = file.read_text("ascii", "replace")
    except OSError as odd:
        raise BadSetting(f"{option}: {file} cannot be read: {odd.strerror}") from None
    if marker not in text:
        raise BadSetting(
            f"{option}: {file} holds no {what}; give the PEM file with a line -----BEGIN {marker}"
        )
