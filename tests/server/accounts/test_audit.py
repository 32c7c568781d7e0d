from __future__ import annotations

import pytest
from sqlalchemy import Connection

from regatta.server.accounts import audit
from regatta.server.accounts.audit import (
    Entry,
    forget_audit,
    masked,
    read_audit,
    request_line,
    write_audit,
)
from tests.server.accounts.people import NOW

VALUE = "rgt_0123456789abcdef_" + "Ab-_" * 10 + "xyz"
SHOWN = "rgt_0123456789abcdef_***"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJ1c2VybmFtZSI6ImFubiJ9.c2lnbmF0dXJl"


def test_an_entry_is_read_as_written(connection: Connection) -> None:
    entry = Entry(NOW, "ann", "PUT /x", "ann~j", "192.0.2.1", "NoJobError", 404)
    write_audit(connection, entry)

    (read,) = read_audit(connection).entries
    assert read.id > 0
    assert Entry(read.at, *(getattr(read, f) for f in Entry.__slots__[1:-1])) == entry


def some(connection: Connection) -> None:
    for n in range(10):
        who, job = ("ann", "bob")[n % 2], f"ann~{n % 3}"
        write_audit(connection, Entry(NOW + n, who, f"{n}", job))


@pytest.mark.parametrize(
    ("who", "job", "found"),
    [
        (None, None, "9876543210"),
        ("ann", None, "86420"),
        (None, "ann~0", "9630"),
        ("bob", "ann~0", "93"),
        ("cy", None, ""),
        ("%", None, ""),
    ],
)
def test_entries_come_newest_first_by_user_and_job(
    connection: Connection, who: str | None, job: str | None, found: str
) -> None:
    some(connection)
    page = read_audit(connection, who=who, job=job)
    assert "".join(entry.what for entry in page.entries) == found
    assert page.before is None


@pytest.mark.parametrize("limit", [1, 3, 5, 9, 10, 11])
def test_pages_have_everything_once_whatever_is_written_meanwhile(
    connection: Connection, limit: int
) -> None:
    some(connection)
    seen: list[str] = []
    before, pages = None, 0
    while True:
        pages += 1
        page = read_audit(connection, before=before, limit=limit)
        assert len(page.entries) <= limit
        seen += [entry.what for entry in page.entries]
        write_audit(connection, Entry(NOW + 99, "ann", "new"))
        before = page.before
        if before is None:
            break
    assert seen == list("9876543210")
    assert pages == -(-10 // limit)


@pytest.mark.parametrize(("limit", "length"), [(0, 1), (-5, 1), (10**9, 7)])
def test_a_page_is_neither_empty_nor_endless(
    connection: Connection, limit: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_ENTRIES", 7)
    some(connection)
    assert len(read_audit(connection, limit=limit).entries) == length


def test_what_is_old_is_forgotten(connection: Connection) -> None:
    some(connection)
    assert forget_audit(connection, NOW + 4) == 4
    assert read_audit(connection).entries[-1].what == "4"


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/api/v2/jobs/ann~j", "/api/v2/jobs/ann~j"),
        (f"/api/v2/tokens/{VALUE}", f"/api/v2/tokens/{SHOWN}"),
        (f"/api/v2/token/{VALUE}/", f"/api/v2/token/{SHOWN}/"),
        (f"/API/V2/TOKENS/{VALUE}", f"/API/V2/TOKENS/{SHOWN}"),
        (f"/api/v2/tokens/%72gt_{VALUE[4:]}", f"/api/v2/tokens/{SHOWN}"),
        (f"/api/v2/tokens/{JWT}", "/api/v2/tokens/***"),
        ("/api/v2/tokens/hunter2", "/api/v2/tokens/***"),
        ("/api/v2/tokens/0123456789abcdef", "/api/v2/tokens/0123456789abcdef"),
        ("/api/v2/tokens/application", "/api/v2/tokens/application"),
        ("/api/v2/tokens/check", "/api/v2/tokens/check"),
        ("/api/v2/tokens", "/api/v2/tokens"),
        (f"/x/{VALUE}", f"/x/{SHOWN}"),
        (f"/x?token={VALUE}&password=hunter2", "/x"),
        ("/a\r\nb", "/a  b"),
    ],
)
def test_a_path_tells_no_secret(path: str, kept: str) -> None:
    assert request_line("DELETE", path) == f"DELETE {kept}"


@pytest.mark.parametrize("field", ["who", "what", "job", "address", "result"])
@pytest.mark.parametrize("secret", [VALUE, JWT])
def test_no_field_keeps_a_token(connection: Connection, field: str, secret: str) -> None:
    texts = {"who": "ann", "what": "x"} | {field: f"a {secret} b"}
    write_audit(connection, Entry(NOW, **texts))

    (read,) = read_audit(connection).entries
    assert secret[-12:] not in repr(read)
    assert getattr(read, field).startswith("a ")


def test_a_field_is_as_long_as_there_is_room(connection: Connection) -> None:
    long = "x" * 5000
    write_audit(connection, Entry(NOW, long, long, long, long, long, 200))
    (read,) = read_audit(connection).entries
    assert [len(getattr(read, f)) for f in ("who", "what", "job", "address", "result")] == [
        64,
        512,
        512,
        64,
        512,
    ]


def test_a_token_is_masked_before_it_is_cut(connection: Connection) -> None:
    write_audit(connection, Entry(NOW, "ann", "x" * 480 + VALUE))
    (read,) = read_audit(connection).entries
    assert "Ab-_" not in read.what


def test_a_line_is_one_line() -> None:
    assert masked("a\nb\x1b[31m\u2028c\0d\ud800") == "a b [31m c d "
