"""Asks everything of the table as everybody, and tells what was answered otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.server.team.authorisation.asks import Ask, For, Table, refusal_of
from tests.server.team.authorisation.world import OWNER, PEOPLE, As, World, kept, sees
from tests.server.team.serving import Answer

#: As long as the name that it stands for.
NOBODYS = "x" * len(kept(OWNER))
#: Of a refusal: what may differ from one moment to the next.
_MOMENTARY = frozenset({"date"})


class Cell(NamedTuple):
    """What is not as it should be."""

    operation: str
    who: str
    said: str


def deviations(world: World, table: Table) -> list[Cell]:
    return [
        cell
        for (method, path), asks in table.items()
        for ask in asks
        for cell in _asked(world, method, path, ask)
    ]


def _asked(world: World, method: str, path: str, ask: Ask) -> Iterator[Cell]:
    operation = f"{method} {path}{ask.query}"
    refusals = {who: refusal_of(ask.whom, who, world.visibility) for who in As}
    changes = method not in ("GET", "HEAD")
    before = (world.kept_job(), world.accounts()) if changes else None
    for who, status in refusals.items():
        if status is not None:
            found = _send(world, method, path, ask, who, world.place())
            for said in _not_refused(world, method, path, ask, who, status, found):
                yield Cell(operation, str(who), said)
    if changes and (world.kept_job(), world.accounts()) != before:
        yield Cell(operation, "somebody refused", "changed something all the same")
    for who, status in refusals.items():
        if status is None and not ask.ends_server:
            place = world.place(**ask.spends(world))
            found = _send(world, method, path, ask, who, place)
            for said in _not_served(world, ask, who, place, found):
                yield Cell(operation, str(who), said)


def _send(world: World, method: str, path: str, ask: Ask, who: As, place: dict[str, str]) -> Answer:
    place = {**place, "last": world.last_of(who.user), "me": who.user}
    place |= {key: value.format(**place) for key, value in ask.braces.items()}
    target = (path + ask.query).format(**place)
    token = world.tokens[who]
    if who in (As.OWNER, As.MEMBER, As.OTHER, As.ADMIN) and ask.spends_token:
        token = world.a_token(who.user)
    elif who is As.OWNER and ask.spends_owner:
        token = world.a_token(place["user"])
    sent: dict[str, Any] = ask.sends(place)
    return world.ask_with(method, target, token, until=ask.until.format(**place), **sent)


def _not_refused(
    world: World, method: str, path: str, ask: Ask, who: As, status: int, found: Answer
) -> Iterator[str]:
    if found.status != status:
        yield f"{found.status} instead of {status}"
    elif status == 404:
        nowhere = _send(world, method, path, ask, who, world.place(name=NOBODYS))
        if _told(found, kept(OWNER)) != _told(nowhere, NOBODYS):
            yield f"{found.body!r} instead of {nowhere.body!r}, which tells that there is one"
    for user in PEOPLE:
        # The path was the asker's own, and may come back.
        if "speaks" in found.body.decode() or (
            kept(user) in found.body.decode() and not (user == OWNER and status in (403, 404))
        ):
            yield f"a refusal that tells of {kept(user)}"


def _told(answer: Answer, name: str) -> object:
    headers = {
        key.lower(): value for key, value in answer.headers.items() if key.lower() not in _MOMENTARY
    }
    return answer.status, headers, answer.body.replace(name.encode(), b"JOB")


def _not_served(
    world: World, ask: Ask, who: As, place: dict[str, str], found: Answer
) -> Iterator[str]:
    if found.status != ask.ok:
        yield f"{found.status} instead of {ask.ok}: {found.body[:300]!r}"
        return
    said = found.body.decode()
    if ask.whom in (For.LISTS, For.LISTS_OF_OWNER):
        for user in PEOPLE:
            may = sees(who, user, world.visibility)
            may = may and (ask.whom is For.LISTS or user == OWNER)
            if may != (kept(user) in said):
                yield f"a list {'without' if may else 'with'} {kept(user)}"
        if said.startswith('{"totalCount":') and found.json["totalCount"] != len(
            found.json["data"]
        ):
            yield "a count of more than is shown"
    elif ask.whom is For.THOSE_WHO_SEE and ask.shows.format(**place) not in said:
        yield f"nothing of {ask.shows.format(**place)}: {said[:300]}"
    if ask.for_admins and (ask.for_admins in said) != (who is As.ADMIN):
        yield f"{ask.for_admins!r} is {'not ' if who is As.ADMIN else ''}in the answer"
