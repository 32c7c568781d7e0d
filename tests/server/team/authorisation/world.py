"""A team's server with everybody who might ask something of it, and something to ask for."""

from __future__ import annotations

import http.client
import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from sqlalchemy import Connection, select

from regatta.server.accounts.administration import add_group, join_group
from regatta.server.accounts.tables import TOKENS
from regatta.server.accounts.tokens import Kind, issue, revoke
from regatta.server.accounts.user_groups import list_groups
from regatta.server.accounts.users import get_user, list_users
from regatta.server.accounts.visibility import Visibility
from regatta.server.records.job_rows import job_of
from regatta.server.streams import sse
from regatta.server.team.account_namespaces import account_namespace
from regatta.server.team.team_settings import TeamSettings
from tests.doors import eventually, shell_job
from tests.server.team.serving import NO_LIMITS, PATIENCE, Answer, TeamServer, a_team_server

JOBS = "/regatta/v1/jobs"
GROUP = "crew"
#: A virtual cluster that nobody is granted.
SPARE_CLUSTER = "spare"


class As(Enum):
    """Who asks, and whose account that is. What is over was an admin's: it opened most."""

    NONE = ("none", "")
    GARBAGE = ("garbage", "")
    EXPIRED = ("expired", "boss")
    REVOKED = ("revoked", "boss")
    APPLICATION = ("application", "ann")
    OTHER = ("other user", "oz")
    MEMBER = ("group member", "mia")
    OWNER = ("owner", "ann")
    ADMIN = ("admin", "boss")

    @property
    def user(self) -> str:
        return self.value[1]

    @property
    def known(self) -> bool:
        return self not in (As.NONE, As.GARBAGE, As.EXPIRED, As.REVOKED)

    def __str__(self) -> str:
        return self.value[0]


OWNER = As.OWNER.user
#: Whose jobs are looked for in whatever is listed.
PEOPLE = ("ann", "mia", "oz")


def kept(user: str) -> str:
    """The name of a job of theirs, which runs as long as the server."""
    return f"{user}-keeps"


def sees(who: As, owner: str, visibility: Visibility) -> bool:
    if who is As.ADMIN or who.user == owner or visibility is Visibility.ALL:
        return True
    return visibility is Visibility.GROUP and {who.user, owner} <= {"ann", "mia"}


class World:
    def __init__(self, server: TeamServer, visibility: Visibility) -> None:
        self.server, self.visibility = server, visibility
        self._numbers = itertools.count(1)
        server.add_user("boss", admin=True)
        for name in (*PEOPLE, "bystander"):
            server.add_user(name)
        database, now = server.database, server.now()
        database.run_here(add_group, GROUP, now)
        for name in ("ann", "mia"):
            database.run_here(join_group, name, GROUP, now)
        self.kept_token = self.a_token(OWNER)
        self.tokens = {who: self._token(who) for who in As}
        self._work()
        self.kept_uid: str = self.job(OWNER, kept(OWNER))["metadata"]["uid"]

    def _token(self, who: As) -> str | None:
        if not who.user:
            return None if who is As.NONE else "rgt_0123456789abcdef_" + "A" * 43
        kind = Kind.APPLICATION if who is As.APPLICATION else Kind.SIGN_IN
        return self.a_token(who.user, kind, expired=who is As.EXPIRED, revoked=who is As.REVOKED)

    def a_token(
        self,
        user: str,
        kind: Kind = Kind.SIGN_IN,
        *,
        expired: bool = False,
        revoked: bool = False,
    ) -> str:
        database, now = self.server.database, self.server.now()
        id = database.read_here(get_user, user).id
        made = now - 7_200_000 if expired else now
        issued = database.run_here(issue, id, kind, made, 3600)
        if revoked:
            database.run_here(revoke, id, issued.handle, now)
        return issued.value

    def _work(self) -> None:
        for user in PEOPLE:
            self.submit_config(user, kept(user), f"echo {kept(user)} speaks; exec sleep 1000")
        for user in PEOPLE:
            eventually(lambda user=user: self._runs(user), f"{kept(user)} to run")  # type: ignore[misc]
        # Who hears of the end of this list has heard all of it that is for them.
        for user in (*PEOPLE, "boss"):
            self.submit(user, self.last_of(user), suspend=True)

    def _runs(self, user: str) -> bool:
        job = self.job(user, kept(user))
        said = b"speaks" in self.ask("GET", self.at(user, kept(user)) + "/logs", As.ADMIN).body
        row = self.server.database.read_here(job_of, user, kept(user))
        return said and row.state == "RUNNING" and job["status"]["phase"] == "Running"

    @staticmethod
    def last_of(user: str) -> str:
        return f"{user}-came-last"

    @staticmethod
    def at(user: str, name: str) -> str:
        return f"/regatta/v1/namespaces/{account_namespace(user)}/jobs/{name}"

    def submit(self, user: str, name: str, script: str = "true", *, suspend: bool = False) -> None:
        spec: dict[str, Any] = {"runPolicy": {"suspend": True}} if suspend else {}
        token = self.tokens[_PERSON[user]]
        sent = self.server.ask("POST", JOBS, token, body={"text": shell_job(name, script, **spec)})
        assert sent.status == 201, sent.body

    def submit_config(self, user: str, name: str, command: str) -> None:
        """As OpenPAI's clients do; our own see it as well."""
        token, config = self.tokens[_PERSON[user]], openpai_config(name, command)
        kind = {"Content-Type": "text/yaml"}
        sent = self.server.ask("POST", "/api/v2/jobs", token, text=config, headers=kind)
        assert sent.status == 202, sent.body

    def links(self, name: str, query: str = "") -> list[str]:
        """The paths of links to what a job of the owner's printed."""
        task = "attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
        found = self.ask("GET", f"/api/v2/jobs/{OWNER}~{name}/{task}{query}", As.OWNER)
        assert found.status == 200, found.body
        return [urlsplit(one["uri"]).path for one in found.json["locations"]]

    def job(self, user: str, name: str) -> Any:
        found = self.ask("GET", self.at(user, name), As.ADMIN)
        assert found.status == 200, found.body
        return found.json

    def fresh(self, what: str) -> str:
        return f"{what}{next(self._numbers)}"

    # To be changed by whoever may

    def a_job(self, *, suspend: bool = True) -> str:
        """Of the owner's."""
        name = self.fresh("fresh-")
        self.submit(OWNER, name, "exec sleep 1000", suspend=suspend)
        return name

    def a_user(self) -> str:
        return self.server.add_user(self.fresh("fresh")).name

    def a_group(self) -> str:
        name: str = self.server.database.run_here(
            add_group, self.fresh("fresh"), self.server.now()
        ).name
        return name

    # Asking

    def ask(self, method: str, target: str, who: As, **sent: Any) -> Answer:
        return self.ask_with(method, target, self.tokens[who], **sent)

    def ask_with(
        self, method: str, target: str, token: str | None, *, until: str = "", **sent: Any
    ) -> Answer:
        """`until`: what a stream that never ends is read up to."""
        if not until:
            return self.server.ask(method, target, token, **sent)
        with self.streaming(target, token) as stream:
            return Answer(stream.status, stream.headers, read_until(stream, until))

    @contextmanager
    def streaming(self, target: str, token: str | None) -> Iterator[http.client.HTTPResponse]:
        netloc = urlsplit(self.server.url).netloc
        with closing(http.client.HTTPConnection(netloc, timeout=PATIENCE)) as connection:
            sent = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", target, headers=sent)
            yield connection.getresponse()

    # What must not have changed

    def accounts(self) -> object:
        """All that is known of accounts, but when tokens were last used."""
        database = self.server.database
        users, groups = database.read_here(list_users), database.read_here(list_groups)
        return users, groups, database.read_here(_living_tokens)

    def kept_job(self) -> object:
        job = self.job(OWNER, kept(OWNER))
        row = self.server.database.read_here(job_of, OWNER, kept(OWNER))
        metadata = job["metadata"]
        seen = (metadata["uid"], metadata.get("generation"), job["spec"], job["status"]["phase"])
        return *seen, row.id, row.state, row.execution_type, row.tags

    def place(self, **fresh: str) -> dict[str, str]:
        """What stands for the braces of a path."""
        name = fresh.get("name", kept(OWNER))
        return {
            "namespace": account_namespace(OWNER),
            "name": name,
            "framework": f"{OWNER}~{name}",
            "username": OWNER,
            "user": OWNER,
            "group": GROUP,
            "vc": "default",
            "attempt": "0",
            "role": "worker",
            "index": "0",
            "life": "0",
            "storage": "none",
            "handle": self.kept_token.split("_")[1],
            "token": self.kept_token,
            "uid": self.kept_uid,
            "url": self.server.url,
            "new": self.fresh("new-"),
            "newuser": self.fresh("newuser"),
            **fresh,
        }


_PERSON = {who.user: who for who in (As.OWNER, As.MEMBER, As.OTHER, As.ADMIN)}


def openpai_config(name: str, command: str) -> str:
    resources = {"cpu": 1, "memoryMB": 100, "gpu": 0}
    role = {"instances": 1, "dockerImage": "none", "resourcePerInstance": resources}
    image = {"name": "none", "type": "dockerimage", "uri": "none"}
    return yaml.safe_dump(
        {
            "protocolVersion": 2,
            "name": name,
            "type": "job",
            "prerequisites": [image],
            "taskRoles": {"worker": {**role, "commands": [command]}},
        }
    )


def _living_tokens(connection: Connection) -> list[str]:
    return list(
        connection.execute(select(TOKENS.c.handle).where(TOKENS.c.revoked.is_(None))).scalars()
    )


def read_until(stream: http.client.HTTPResponse, marker: str) -> bytes:
    """What a stream says up to this; all of it where it is no stream."""
    if "event-stream" not in stream.headers["Content-Type"]:
        return stream.read()
    said = b""
    while marker.encode() not in said:
        more = stream.read1()
        assert more, f"the stream ended without {marker}: {said!r}"
        said += more
    return said


@contextmanager
def a_world(folder: Path, visibility: Visibility) -> Iterator[World]:
    folder.mkdir(parents=True, exist_ok=True)
    clusters = ("default", SPARE_CLUSTER)
    settings = TeamSettings(rates=NO_LIMITS, visibility=visibility, virtual_clusters=clusters)
    with (
        pytest.MonkeyPatch.context() as patched,
        a_team_server(folder, settings=settings) as server,
    ):
        # A refusal that comes late is one all the same, and not the end of a stream.
        patched.setattr(sse, "REFUSAL_SECONDS", 5.0)
        yield World(server, visibility)
