"""Loaded by schemathesis, in its own process: who asks. What ends a token gets one of its own to
end, so that whatever comes after it is not refused."""

from __future__ import annotations

import os
from typing import Any

import requests
import schemathesis

ENDS_TOKEN = ("/api/v2/authn/basic/logout", "/regatta/v1/session")
LOGIN = "/api/v2/authn/basic/login"
#: Variables of the environment.
URL, TOKEN = "REGATTA_TEST_URL", "REGATTA_TEST_TOKEN"
USER, PASSWORD = "REGATTA_TEST_USER", "REGATTA_TEST_PASSWORD"


@schemathesis.auth(refresh_interval=None)
class Asking:
    def get(self, case: Any, context: Any) -> str:
        if case.path not in ENDS_TOKEN:
            return os.environ[TOKEN]
        sent = {"username": os.environ[USER], "password": os.environ[PASSWORD]}
        answer = requests.post(os.environ[URL] + LOGIN, json=sent, timeout=60)
        token: str = answer.json()["token"]
        return token

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"
