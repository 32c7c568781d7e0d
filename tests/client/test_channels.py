"""Requests to a server: what goes out, and what each kind of trouble is called. Both channels say
the same."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from regatta.api.errors import (
    InvalidJob,
    JobNotFound,
    NotRegatta,
    RegattaError,
    ServerUnreachable,
    Unanswered,
    Unauthorized,
    WrongDoor,
)
from regatta.engines.base import LogQuery
from regatta.engines.blocking import Blocking
from tests.client.scripted import (
    END,
    Answer,
    Scripted,
    a_job,
    a_line,
    a_scripted_server,
    cut_off,
    hang_up,
    lines,
    reply,
    say_nothing,
    streams,
)
from tests.http.certificates import Authority


def test_a_request_carries_the_token_and_its_question(engine: Blocking, server: Scripted) -> None:
    server.answers(reply(200, {"items": [a_job("here")]}))

    [job] = engine.list("team a")

    [asked] = server.asked
    assert job.name == "here"
    assert (asked.method, asked.path) == ("GET", "/regatta/v1/jobs?namespace=team+a")
    assert asked.headers["Authorization"] == "Bearer secret"
    assert asked.headers["Host"] == server.url.removeprefix("http://")


def test_names_are_quoted_and_bodies_are_json(engine: Blocking, server: Scripted) -> None:
    server.answers(reply(200, a_job()))

    engine.scale("team", "a/b", "worker", 3)

    [asked] = server.asked
    assert asked.path == "/regatta/v1/namespaces/team/jobs/a%2Fb/scale"
    assert asked.body == {"role": "worker", "replicas": 3}
    assert asked.headers["Content-Type"] == "application/json"


def test_a_server_behind_a_gateway_is_asked_under_its_path(
    connect: Callable[[str], Blocking], server: Scripted
) -> None:
    server.answers(reply(200, {"items": []}))

    connect(f"{server.url}/train/").list()

    assert server.asked[0].path == "/train/regatta/v1/jobs"


PROBLEM = {"path": "spec.x", "message": "is odd", "severity": "error", "line": 3}
TROUBLE: dict[str, tuple[Answer, type[RegattaError], str]] = {
    "a refusal is of its own kind": (
        reply(404, {"code": "JobNotFound", "message": "no such job"}),
        JobNotFound,
        "no such job",
    ),
    "an invalid job keeps its problems": (
        reply(422, {"code": "InvalidJob", "message": "bad", "problems": [PROBLEM]}),
        InvalidJob,
        "spec.x",
    ),
    "a wrong token": (reply(401, {"code": "Unauthorized", "message": "who?"}), Unauthorized, "who"),
    "a refusal that is not ours": (reply(502, b"<html>"), NotRegatta, "HTTP 502, as a proxy"),
    "an answer that is not ours": (reply(200, b"hello"), NotRegatta, "cannot be read"),
    "a redirect": (
        reply(302, b"", headers={"Location": "http://elsewhere"}),
        NotRegatta,
        "redirects to http://elsewhere",
    ),
    "nothing comes back": (hang_up, Unanswered, "answer"),
    "half an answer": (cut_off, Unanswered, "cut off"),
    "silence": (say_nothing, Unanswered, "did not answer in time"),
}


@pytest.mark.parametrize("case", TROUBLE.values(), ids=list(TROUBLE))
def test_trouble_with_an_answer(
    engine: Blocking,
    server: Scripted,
    case: tuple[Answer, type[RegattaError], str],
    request: pytest.FixtureRequest,
) -> None:
    answer, kind, sentence = case
    if answer is say_nothing:
        request.getfixturevalue("impatient")
    server.answers(answer)

    with pytest.raises(RegattaError, match=sentence) as caught:
        engine.get("default", "one")

    assert type(caught.value) is kind
    assert len(server.asked) == 1


def test_where_nobody_listens_nothing_went_out(connect: Callable[[str], Blocking]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    with pytest.raises(ServerUnreachable, match=f"no server answers at {url}: ") as caught:
        connect(url).list()

    assert not isinstance(caught.value, Unanswered)


def test_https_is_spoken_and_a_stranger_is_not_trusted(
    connect: Callable[[str], Blocking], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server", "IP:127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    with a_scripted_server(tls) as server:
        server.answers(reply(200, {"items": []}), streams(lines("safe", id="a=1"), END))
        with pytest.raises(
            ServerUnreachable, match=r"is not trusted by this machine .* SSL_CERT_FILE"
        ):
            connect(server.url).list()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nope"))
        with pytest.raises(WrongDoor, match=r"SSL_CERT_FILE names .*/nope, which cannot be read"):
            connect(server.url).list()
        plain = server.url.replace("https", "http")
        with pytest.raises(WrongDoor, match=f"answers, but not HTTP; try {server.url}"):
            connect(plain).list()

        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        trusting = connect(server.url)

        assert trusting.list() == []
        [batch] = trusting.logs("default", "one", LogQuery())
        assert batch.lines == (a_line("safe"),)


def test_https_to_a_port_of_plain_http_is_told_what_to_try(
    connect: Callable[[str], Blocking], server: Scripted
) -> None:
    with pytest.raises(WrongDoor, match=f"not by HTTPS; try {server.url}"):
        connect(server.url.replace("http", "https")).list()


def test_a_page_where_a_stream_was_asked_for_is_not_ours(
    engine: Blocking, server: Scripted
) -> None:
    server.answers(reply(200, b"<html>", headers={"Content-Type": "text/html"}))

    with pytest.raises(NotRegatta, match="it sent text/html where a stream was asked for"):
        list(engine.logs("default", "one", LogQuery()))


def test_a_reader_who_leaves_closes_the_connection(engine: Blocking, server: Scripted) -> None:
    left = threading.Event()

    def until_left(handler: object, over: threading.Event) -> None:
        streams(lines("first", id="a=1"), silent=False, in_order=False)(handler, over)  # type: ignore[arg-type]
        handler.connection.settimeout(30)  # type: ignore[attr-defined]
        if handler.connection.recv(1) == b"":  # type: ignore[attr-defined]
            left.set()

    server.answers(until_left)
    stream = engine.follow("default", "one", LogQuery())
    next(stream)

    stream.close()

    assert left.wait(30)


def test_a_long_stream_comes_whole(engine: Blocking, server: Scripted) -> None:
    long = [lines(*(f"{n}-{'x' * 100}" for n in range(500)), id=f"a={n}") for n in range(20)]
    server.answers(streams(*long, END))

    batches = list(engine.logs("default", "one", LogQuery()))

    assert [len(batch.lines) for batch in batches] == [500] * 20
