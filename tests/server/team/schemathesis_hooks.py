"""Loaded by schemathesis, in its own process: what ends a token gets one of its own to end."""

from __future__ import annotations

import os
from typing import Any

import requests
import schemathesis

ENDS_TOKEN = ("/api/v2/authn/basic/logout", "/regatta/v1/session")
LOGIN = "/api/v2/authn/basic/login"
URL, USER, PASSWORD = "REGATTA_TEST_URL", "REGATTA_TEST_USER", "REGATTA_TEST_PASSWORD"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    if case.method == "DELETE" and case.path in ENDS_TOKEN:
        sent = {"username": os.environ[USER], "password": os.environ[PASSWORD]}
        signed_in = requests.post(os.environ[URL] + LOGIN, json=sent, timeout=60)
        own = {"Authorization": f"Bearer {signed_in.json()['token']}"}
        kwargs["headers"] = {**(kwargs.get("headers") or {}), **own}
