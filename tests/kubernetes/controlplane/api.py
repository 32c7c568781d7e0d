"""A plain client for test code: JSON in, JSON out, nothing of the engine under test.

A test that read the cluster through the code it checks would share that code's mistakes.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.patience import Patience

_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Refused(Exception):
    """The API server answered with an error; `status` is its HTTP code."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: {status} {body[:2000]}")
        self.status = status
        self.body = body


class Api:
    """Requests as one user. Safe to use from several threads: each has its own connection."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        parts = urlsplit(server)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 443)
        self._ca_file = ca_file
        self._token = token
        self._local = threading.local()

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(path)["items"]
        return found

    def metadata(self, path: str) -> list[dict[str, Any]]:
        """The items of a list, each with nothing but its metadata."""
        _, text = self.raw("GET", path, accept=_METADATA)
        found: list[dict[str, Any]] = (
            json.loads(text).get("items") or []
        )  # null where there are none
        return found

    def find(self, path: str) -> Any | None:
        """The object at this path, or None where there is none."""
        try:
            return self.get(path)
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def create(self, path: str, body: dict[str, Any]) -> Any:
        return self.request("POST", path, body)

    def replace(self, path: str, body: dict[str, Any]) -> Any:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Any:
        return self.request("PATCH", path, body, content_type=_PATCHES[kind])

    def delete(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.request("DELETE", path, body)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        status, text = self.raw(method, path, body, content_type)
        if status >= 400:
            raise Refused(method, path, status, text)
        return json.loads(text) if text.startswith(("{", "[")) else text

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, str]:
        """Status and text, whatever they are; only a lost connection raises."""
        payload = None if body is None else json.dumps(body)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": content_type,
            "Accept": accept,
        }
        reused = getattr(self._local, "connection", None) is not None
        try:
            return self._send(method, path, payload, headers)
        except (OSError, http.client.HTTPException):
            self.close()
            if not reused:
                raise
            # A kept connection may have been closed at the other end since; once more on a new one.
            return self._send(method, path, payload, headers)

    def wait_for(
        self,
        path: str,
        condition: Callable[[Any], bool],
        *,
        what: str,
        deadline_seconds: float = 60,
    ) -> Any:
        """Poll an object (None while it is missing) until the condition holds; returns it.

        Given up when it has not changed for so many seconds.
        """
        seen: Any = None
        patience = Patience(deadline_seconds, lambda: seen)
        while True:
            seen = self.find(path)
            if condition(seen):
                return seen
            if patience.over:
                raise TimeoutError(f"{path}: {what} not seen in {patience}; last: {seen}")
            time.sleep(0.05)

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _send(
        self, method: str, path: str, payload: str | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            context = ssl.create_default_context(cafile=str(self._ca_file))
            connection = http.client.HTTPSConnection(*self._address, context=context, timeout=60)
            self._local.connection = connection
        connection.request(method, path, payload, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
