"""How much a request may carry."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from regatta.server.bounds.body_limit import LARGEST_BODY
from tests.doors import Regatta

PIECE = b" " * (1 << 20)


def pieces(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield PIECE


def most_memory(pid: int) -> int:
    """In bytes, ever."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def connection(regatta: Regatta) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(regatta.address.url).netloc, timeout=60)


def headers(regatta: Regatta, **more: str) -> dict[str, str]:
    token = f"Bearer {regatta.files.token()}"
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return {"Authorization": token, "Content-Type": "application/json", **named}


def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(regatta: Regatta) -> None:
    announced = headers(regatta, Content_Length=str(200_000_000))
    with closing(connection(regatta)) as sent:
        sent.request("POST", "/regatta/v1/jobs", headers=announced)
        answer = sent.getresponse()
        said = json.loads(answer.read())

    assert (answer.status, said["code"]) == (413, "TooLarge")
    assert "the body has 200,000,000 bytes, and 16 MiB is the most" in said["message"]


@pytest.mark.parametrize("announced", [True, False], ids=["with its size", "in chunks"])
def test_who_sends_all_of_it_first_hears_the_refusal_and_costs_no_memory(
    regatta: Regatta, announced: bool
) -> None:
    pid = regatta.address.pid
    before, count = most_memory(pid), 200
    more = {"Content_Length": str(count * len(PIECE))} if announced else {}
    with closing(connection(regatta)) as sent:
        sent.request(
            "POST",
            "/regatta/v1/jobs",
            pieces(count),
            headers(regatta, **more),
            encode_chunked=not announced,
        )
        answer = sent.getresponse()
        said = json.loads(answer.read())

    assert (answer.status, said["code"]) == (413, "TooLarge")
    assert "16 MiB is the most" in said["message"]
    assert most_memory(pid) - before < 4 * LARGEST_BODY


def test_the_largest_job_file_fits_however_it_is_written(regatta: Regatta) -> None:
    """Refused for what it says, then, and not for its size."""
    text = "\\u0020" * (1 << 20)
    body = f'{{"text": "{text}"}}'
    with closing(connection(regatta)) as sent:
        sent.request("POST", "/regatta/v1/jobs", body, headers(regatta))
        answer = sent.getresponse()
        said = json.loads(answer.read())

    assert (answer.status, said["code"]) == (422, "InvalidJob")
