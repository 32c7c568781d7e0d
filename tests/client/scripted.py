"""A real HTTP server on a real socket that answers as a test has written down, one answer after
another. Where the script is at its end it hangs up."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from regatta.engines.base import LogLine

Handler = http.server.BaseHTTPRequestHandler
Answer = Callable[[Handler, threading.Event], None]


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


def reply(status: int, content: object, *, headers: dict[str, str] | None = None) -> Answer:
    def answer(handler: Handler, _: threading.Event) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def hang_up(handler: Handler, _: threading.Event) -> None:
    """The request came, and no answer goes out."""
    handler.close_connection = True


def say_nothing(_: Handler, over: threading.Event) -> None:
    over.wait()


def cut_off(handler: Handler, _: threading.Event) -> None:
    """An answer of which the second half never comes."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b'{"items":')
    handler.close_connection = True


def streams(*events: str, silent: bool = False, in_order: bool = True) -> Answer:
    """A stream of events that then stays open (`silent`), ends `in_order`, or breaks."""

    def answer(handler: Handler, over: threading.Event) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for event in (": still here\n\n", *events):
            raw = event.encode()
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(raw), raw))
        handler.wfile.flush()
        if silent:
            over.wait()
        elif in_order:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return answer


def event(kind: str, data: object, id: str = "") -> str:
    return f"event: {kind}\n" + (f"id: {id}\n" if id else "") + f"data: {json.dumps(data)}\n\n"


def lines(*texts: str, id: str) -> str:
    return event("lines", [["worker-0", "2026-01-01T00:00:00Z", "stdout", t] for t in texts], id)


def a_line(text: str) -> LogLine:
    return LogLine("worker-0", "2026-01-01T00:00:00Z", "stdout", text)


def a_job(name: str = "one", phase: str = "Running", uid: str = "u1") -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "uid": uid},
        "spec": {"mode": "Single", "worker": {"replicas": 1, "template": {}}},
        "status": {"phase": phase},
    }


END = event("end", {})
SYNCED = event("synced", {})


class Scripted:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.script: deque[Answer] = deque()
        self.url = ""

    def answers(self, *answers: Answer) -> None:
        self.script.extend(answers)


@contextmanager
def a_scripted_server(tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    scripted = Scripted()
    over = threading.Event()

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            scripted.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            (scripted.script.popleft() if scripted.script else hang_up)(self, over)
            self.close_connection = True

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        scheme = "http" if tls is None else "https"
        scripted.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        try:
            yield scripted
        finally:
            over.set()
            server.shutdown()
            serving.join()
