"""Who a request comes from, once that is known, and the three questions asked of everybody."""

from __future__ import annotations

from dataclasses import dataclass

from regatta.server.accounts.account_rules import key_of
from regatta.server.accounts.tokens import Kind
from regatta.server.openpai_errors import ADMINS_ONLY, NO_APPLICATIONS, forbidden


@dataclass(frozen=True, slots=True)
class Caller:
    user_id: int
    #: As the account has it, however the request spelt it.
    name: str
    admin: bool
    kind: Kind
    #: Of the token that was shown.
    handle: str
    groups: tuple[str, ...] = ()

    @property
    def application(self) -> bool:
        return self.kind is Kind.APPLICATION


def require_person(caller: Caller) -> None:
    """For all but operations on jobs, which applications may do as well."""
    if caller.application:
        raise forbidden(NO_APPLICATIONS)


def require_admin(caller: Caller) -> None:
    require_person(caller)
    if not caller.admin:
        raise forbidden(ADMINS_ONLY)


def require_self(caller: Caller, name: str) -> None:
    """`name`: whom a request to change "me" says it means."""
    require_person(caller)
    if key_of(name) != key_of(caller.name):
        raise forbidden(f"You are {caller.name} and cannot change user {name[:64]} as yourself.")
