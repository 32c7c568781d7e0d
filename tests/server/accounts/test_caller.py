from __future__ import annotations

import pytest

from regatta.server.accounts.caller import Caller, require_admin, require_person, require_self
from regatta.server.accounts.tokens import Kind
from tests.server.accounts.people import a_caller, refused

APPLICATIONS = "Applications are not allowed to do this operation."


@pytest.mark.parametrize("kind", [Kind.SIGN_IN, Kind.BROWSER])
def test_a_person_may_do_what_people_do(kind: Kind) -> None:
    caller = a_caller(kind=kind)
    require_person(caller)
    require_self(caller, "ann")
    require_admin(a_caller(kind=kind, admin=True))


@pytest.mark.parametrize("admin", [True, False])
def test_an_application_does_jobs_alone_even_an_admins(admin: bool) -> None:
    caller = a_caller(kind=Kind.APPLICATION, admin=admin)
    for question in (require_person, require_admin, lambda c: require_self(c, "ann")):
        with refused(403, "ForbiddenUserError", APPLICATIONS):
            question(caller)


def test_others_are_no_admins() -> None:
    with refused(403, "ForbiddenUserError", "Non-admin is not allow to do this operation."):
        require_admin(a_caller())


@pytest.mark.parametrize("caller", [a_caller(), a_caller(admin=True)])
def test_nobody_is_somebody_else(caller: Caller) -> None:
    with refused(403, "ForbiddenUserError", "cannot change user bob"):
        require_self(caller, "bob")
