"""Which exit code an error has: by its kind, whoever raised it."""

from __future__ import annotations

import pytest

from regatta.api.errors import (
    BadRequest,
    ClusterUnreachable,
    DatabaseLocked,
    DiskFull,
    InternalError,
    JobNotFound,
    NoPorts,
    NotPossible,
    RegattaError,
    ServerBusy,
    ServerUnreachable,
    error_of,
)
from regatta.cli.outcomes import Exit, report

CODES: dict[type[RegattaError], Exit] = {
    BadRequest: Exit.INVALID,
    InternalError: Exit.FAILED,
    DiskFull: Exit.FAILED,
    DatabaseLocked: Exit.FAILED,
    NoPorts: Exit.FAILED,
    JobNotFound: Exit.CONFLICT,
    NotPossible: Exit.CONFLICT,
    ServerBusy: Exit.UNREACHABLE,
    ServerUnreachable: Exit.UNREACHABLE,
    ClusterUnreachable: Exit.UNREACHABLE,
}


@pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)
def test_an_error_has_its_kinds_exit_code_also_when_a_server_told_of_it(
    kind: type[RegattaError],
) -> None:
    assert report(kind("so it is")).code is CODES[kind]
    told = error_of(kind.code, kind.status, "so it is")
    assert report(told).code is CODES[kind]


def test_a_full_disk_is_no_mistake_of_the_command_line() -> None:
    assert DiskFull.status == 507
    assert report(DiskFull("it is full. Make room.")).hint == ""
