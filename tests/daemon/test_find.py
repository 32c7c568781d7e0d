"""Finding the server by what it wrote down, whatever else may stand there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regatta.daemon.find import answering
from regatta.daemon.server_files import Address, ServerFiles

ODD = {
    "nobody listens": "http://127.0.0.1:1",
    "no port that could be": "http://127.0.0.1:notaport",
    "half an address": "http://[::1",
    "no address at all": "",
}


@pytest.mark.parametrize("url", ODD.values(), ids=list(ODD))
def test_an_address_where_nobody_can_be_is_no_server(tmp_path: Path, url: str) -> None:
    files = ServerFiles(tmp_path)
    files.write(Address(url=url, pid=os.getpid(), version="0.1.0"))

    assert answering(files) is None


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff\xfe", b'{"url": 1, "pid": 1, "version": ""}'])
def test_a_file_that_is_no_address_is_no_server(tmp_path: Path, text: bytes) -> None:
    files = ServerFiles(tmp_path)
    files.address.write_bytes(text)

    assert answering(files) is None
