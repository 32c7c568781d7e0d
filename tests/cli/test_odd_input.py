"""Odd streams, bytes, addresses and servers: each is one sentence with a documented exit code."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regatta.cli import main
from tests.doors import Regatta, Said, shell_job


def by_shell(regatta: Regatta, line: str, **environment: str) -> Said:
    """`regatta` in `line` is the command; what it says is bytes as Python reads file names."""
    command = " ".join(regatta.command())
    done = subprocess.run(
        ["bash", "-c", line.replace("regatta ", f"{command} ", 1)],
        capture_output=True,
        timeout=60,
        cwd=regatta.folder,
        env={**regatta.environment, "REGATTA_TRACEBACK": "", **environment},
    )
    return Said(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))


def assert_a_sentence(said: Said, code: int, words: str) -> None:
    assert said.code == code, said
    assert said.err.startswith("error: "), said
    assert words in said.err
    assert "Traceback" not in said.err
    assert "Exception ignored" not in said.err


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--help", "get", "top"])
def test_output_that_cannot_be_written_is_told(
    regatta: Regatta, name: str, words: str, unbuffered: str
) -> None:
    regatta("submit", "-", stdin=shell_job(name))

    said = by_shell(regatta, f"regatta {words} >/dev/full", PYTHONUNBUFFERED=unbuffered)

    assert_a_sentence(said, 1, "the output cannot be written: No space left on device")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_hurt_nobody(regatta: Regatta, name: str, closed: str) -> None:
    file = regatta.write(shell_job(name))

    said = by_shell(regatta, f"regatta run {file} {closed}")

    assert said.code == 0, said
    assert said.err == ""
    assert ("Completed" in said.out) is (">&-" not in closed.replace("2>&-", ""))


def test_a_line_that_the_terminal_has_no_letters_for_is_printed_all_the_same(
    regatta: Regatta, name: str
) -> None:
    regatta("run", "-", stdin=shell_job(name, "echo 'loss ↓ 😀 end'"))

    said = by_shell(regatta, f"regatta logs {name}", PYTHONIOENCODING="gbk")

    assert said.code == 0, said
    assert "? end" in said.out


ODD_BYTES = {
    "a variable": "regatta submit job.yaml --env X=$'\\xff'",
    "a job's name": "regatta get $'\\xff'",
    "a new name": "regatta submit job.yaml --name $'\\xff'",
    "a namespace": "regatta get -n $'\\xff'",
    "a folder": "mkdir -p $'caf\\xe9' && cp job.yaml $'caf\\xe9/' && regatta submit $'caf\\xe9'",
    "the PATH": "PATH=$PATH:$'/caf\\xe9' regatta submit job.yaml",
}


@pytest.mark.parametrize("line", ODD_BYTES.values(), ids=list(ODD_BYTES))
def test_bytes_that_are_no_text_are_refused(regatta: Regatta, line: str) -> None:
    regatta.write(shell_job("bytes"))

    said = by_shell(regatta, line)

    assert_a_sentence(said, 2, "is not UTF-8 text")
    assert "\\xff" in said.err or "caf\\xe9" in said.err


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:notaport", "http://[::1", "http://127.0.0.1:99999", "http://a b:80", "http://"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(regatta: Regatta, address: str) -> None:
    said = regatta("--server", address, "get")

    assert_a_sentence(said, 2, "http://HOST:PORT")


def test_a_host_that_cannot_be_a_name_is_not_found(regatta: Regatta) -> None:
    assert_a_sentence(regatta("--server", "http://a..b:80", "get"), 5, "no server answers")


ANSWERS = {
    "a web page": b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/html\r\n\r\n"
    b"<html></html>",
    "nothing in particular": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "another place": b"HTTP/1.1 302 Found\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\n",
    "half of it": b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"items"',
    "half of a refusal": b"HTTP/1.1 500 Oh\r\nContent-Length: 1000\r\n\r\n{",
    "not even HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "bytes that are no text": b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"\xff"',
}


@contextmanager
def a_server_that_says(answer: bytes) -> Iterator[str]:
    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            serving.join()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_a_server_that_is_not_regattas_is_called_so(regatta: Regatta, answer: bytes) -> None:
    with a_server_that_says(answer) as url:
        said = regatta("--server", url, "get")

    assert_a_sentence(said, 5, url.removeprefix("http://") if b"500" not in answer else "HTTP 500")


@pytest.mark.parametrize("kind", ["a web page", "nothing in particular", "another place"])
def test_a_stream_from_such_a_server_ends_at_once(regatta: Regatta, kind: str) -> None:
    with a_server_that_says(ANSWERS[kind]) as url:
        assert_a_sentence(regatta("--server", url, "logs", "x"), 5, "is not a Regatta server")


def test_where_a_redirect_leads_is_told(regatta: Regatta) -> None:
    with a_server_that_says(ANSWERS["another place"]) as url:
        assert "it redirects to https://x/" in regatta("--server", url, "get").err


@pytest.mark.parametrize("token", ["a\nb", "😀", "a\tb"])
def test_a_token_that_cannot_be_one_is_refused(regatta: Regatta, token: str) -> None:
    said = regatta("--server", "http://127.0.0.1:1", "get", REGATTA_TOKEN=token)

    assert_a_sentence(said, 2, "server.token")


def test_the_newline_that_cat_leaves_behind_a_token_is_no_part_of_it(regatta: Regatta) -> None:
    regatta("server", "start")
    address = regatta.files.read()
    assert address is not None

    token = regatta.files.token() + "\n"

    assert regatta("--server", address.url, "get", REGATTA_TOKEN=token).code == 0


# Root may read everything, so a folder stands for what cannot be read.


def test_a_token_file_that_cannot_be_read_is_named(fresh: Regatta) -> None:
    fresh("server", "start")
    token = fresh.files.token_file
    token.rename(token.with_name("kept"))
    token.mkdir()
    try:
        assert_a_sentence(fresh("get"), 5, "server.token cannot be read (Is a directory)")
    finally:
        token.rmdir()
        token.with_name("kept").rename(token)


def test_a_log_file_that_cannot_be_written_is_named(fresh: Regatta) -> None:
    fresh("server", "start")
    fresh("server", "stop")
    fresh.files.log.unlink()
    fresh.files.log.mkdir()

    assert_a_sentence(fresh("get"), 5, "server.log cannot be written (Is a directory)")
    fresh.files.log.rmdir()


def test_a_directory_that_is_gone_is_told(regatta: Regatta, name: str) -> None:
    regatta.write(shell_job(name))
    line = "mkdir -p gone && cd gone && rmdir ../gone && regatta submit - < ../job.yaml"

    assert_a_sentence(
        by_shell(regatta, line.replace("< ../job.yaml", f"< {regatta.folder}/job.yaml")),
        2,
        "the current directory does not exist any more",
    )


@pytest.mark.parametrize("engine", ["", "local"])
def test_without_a_home_the_way_out_is_told(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv("REGATTA_HOME", raising=False)
    monkeypatch.setenv("REGATTA_ENGINE", engine)

    assert main.run(["get"]) == 2
    assert "REGATTA_HOME" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["/dev/zero", "huge.yaml", "-"])
def test_a_huge_job_file_is_not_read_to_its_end(regatta: Regatta, file: str) -> None:
    huge = regatta.folder / "huge.yaml"
    with huge.open("wb") as sparse:
        sparse.truncate(1 << 40)

    assert_a_sentence(
        by_shell(regatta, f"regatta submit {file} < /dev/zero"), 2, "is larger than 1024 KiB"
    )
    huge.unlink()


def test_a_job_that_comes_through_a_pipe_of_the_shell_runs_in_the_current_directory(
    regatta: Regatta, name: str
) -> None:
    regatta.write(shell_job(name, "pwd"))

    said = by_shell(regatta, "regatta run <(cat job.yaml)")

    assert f"worker-0 | {regatta.folder}\n" in said.out


@pytest.mark.parametrize("moment", ["click", "regatta.cli.settings", "msgspec", "http.client"])
def test_ctrl_c_while_the_command_is_still_loading_exits_130(regatta: Regatta, moment: str) -> None:
    script = (
        "import sys, builtins, regatta; real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        f"    if name == {moment!r}: raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "import regatta.cli.main as program; program.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "get"],
        capture_output=True,
        text=True,
        env=regatta.environment,
    )

    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setenv("REGATTA_ENGINE", "local")
    monkeypatch.setattr("regatta.cli.settings.Settings.engine", explode)


def test_the_unexpected_is_a_sentence_that_says_how_to_see_more(
    broken: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REGATTA_TRACEBACK", raising=False)

    assert main.run(["get"]) == 1

    said = capsys.readouterr().err
    assert said.startswith("error: something unexpected happened: ZeroDivisionError: division by")
    assert "REGATTA_TRACEBACK=1" in said


def test_the_unexpected_is_shown_whole_where_that_is_asked_for(
    broken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGATTA_TRACEBACK", "1")

    with pytest.raises(ZeroDivisionError):
        main.run(["get"])


@pytest.mark.parametrize("verb", ["get", "login"])
def test_a_web_server_is_told_in_a_line_with_its_address_and_what_to_check(
    regatta: Regatta, verb: str
) -> None:
    page = b"<!DOCTYPE HTML>\n<html>\n <body>\n <h1>Error response</h1>\n </body>\n</html>\n"
    head = b"HTTP/1.0 501 Unsupported method\r\nContent-Type: text/html\r\n\r\n"
    with a_server_that_says(head + page) as url:
        words = {"login": (url, "--username", "ann", "--password-file", "-")}.get(verb, ())
        said = regatta("--server", url, verb, *words, stdin="secret")

    assert said.code == 5
    [line] = said.err.splitlines()
    assert f"what answers at {url} is not a Regatta server" in line
    assert "HTTP 501" in line
    assert "check the address" in line
    assert "<" not in line


def test_a_refusal_in_json_that_is_not_ours_is_no_empty_sentence(regatta: Regatta) -> None:
    body = b'{"detail": "Not Found"}'
    with a_server_that_says(b"HTTP/1.0 404 Not Found\r\n\r\n" + body) as url:
        said = regatta("--server", url, "get")

    assert_a_sentence(said, 5, f"what answers at {url} is not a Regatta server")
