"""A team's server in front of a cluster: `regatta serve --team --engine kubernetes` as a process,
and members who speak OpenPAI's REST to it as any HTTP client would."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from regatta.server.accounts.tokens import Kind
from regatta.server.team.account_namespaces import account_namespace
from tests.chaos.team_servers import Answer, Member, TeamProcess
from tests.doors import eventually
from tests.kubernetes.controlplane.access import Access

API = "/rest-server/api"
_numbers = count(1)


class ClusterMember:
    """Somebody with an account, the namespace that it has in the cluster, and their jobs."""

    def __init__(self, cluster: Access, name: str, wire: Member) -> None:
        self.cluster, self.name, self.wire = cluster, name, wire
        self.namespace = account_namespace(name)

    def get(self, path: str) -> Any:
        """Of OpenPAI's API."""
        said = self.wire.ask("GET", API + path)
        assert said.status == 200, said
        return said.body

    def submit(self, config: str) -> Answer:
        """As the guide does it: JSON of version one."""
        return self.wire.ask("POST", f"{API}/v1/user/{self.name}/jobs", config)

    def submit_yaml(self, config: str) -> Answer:
        return self.wire.ask("POST", f"{API}/v2/jobs", config, {"Content-Type": "text/yaml"})

    def stop(self, job: str) -> Answer:
        return self.wire.ask("PUT", f"{self.path(job)}/executionType", {"value": "STOP"})

    def path(self, job: str) -> str:
        return f"{API}/v2/jobs/{self.name}~{job}"

    def status(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/v2/jobs/{self.name}~{job}")["jobStatus"]
        return found

    def engine_name(self, job: str) -> str:
        """As the cluster calls it."""
        return str(self.get(f"/v2/jobs/{self.name}~{job}")["debugId"]).partition("/")[2]

    def pod_of(self, job: str) -> str:
        """The one that it has."""
        path, start = f"/api/v1/namespaces/{self.namespace}/pods", f"{self.engine_name(job)}-"
        names = [pod["metadata"]["name"] for pod in self.cluster.api.items(path)]
        (found,) = [name for name in names if name.startswith(start)]
        return str(found)

    def let_go(self, job: str) -> None:
        """What its program waits for."""
        self.cluster.touch_in(self.namespace, self.pod_of(job), "/tmp/go")

    def listed(self) -> dict[str, str]:
        """States by name."""
        return {job["name"]: job["state"] for job in self.get("/v2/jobs")}

    def until(self, job: str, holds: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        def look() -> bool:
            seen.clear()
            seen.update(self.status(job))
            return holds(seen)

        try:
            eventually(look, what)
        except AssertionError as late:
            raise AssertionError(f"{late}; {job}: {seen}") from None
        return seen

    def reaches(self, job: str, state: str) -> dict[str, Any]:
        ends = ("SUCCEEDED", "FAILED", "STOPPED")
        found = self.until(job, lambda s: s["state"] in (state, *ends), f"{state} of {job}")
        assert found["state"] == state, found
        return found

    def log_links(self, job: str, role: str, index: int = 0) -> Answer:
        task = f"attempts/0/taskRoles/{role}/taskIndex/{index}/attempts/0/logs"
        return self.wire.ask("GET", f"{self.path(job)}/{task}")

    def log(self, job: str, role: str, index: int = 0) -> str:
        """Of a task: by the link that the server gives, without any token."""
        links = self.log_links(job, role, index)
        assert links.status == 200, links
        places = {place["name"]: place["uri"] for place in links.body["locations"]}
        said = Member(urlsplit(places["all"]).port or 80, "").ask(
            "GET", urlsplit(places["all"]).path, headers={"Authorization": ""}
        )
        assert said.status == 200, said
        return str(said.body)

    def kubectl(self, *words: str) -> None:
        self.cluster.kubectl("-n", self.namespace, *words)


class ClusterTeam:
    def __init__(self, cluster: Access, server: TeamProcess) -> None:
        self.cluster, self.server = cluster, server
        self._namespaces: list[str] = []

    def member(self, *, admin: bool = False, kind: Kind = Kind.APPLICATION) -> ClusterMember:
        """Of a name of its own: namespaces outlive a server."""
        name = f"ann{os.getpid()}x{next(_numbers)}"
        wire = self.server.account(name, admin=admin, kind=kind)
        found = ClusterMember(self.cluster, name, wire)
        self._namespaces.append(found.namespace)
        return found

    def leave(self) -> None:
        self.server.stop()
        for namespace in self._namespaces:
            self.cluster.kubectl(
                "delete", "namespace", namespace, "--wait=false", "--ignore-not-found"
            )


@contextmanager
def a_cluster_team(
    cluster: Access, folder: Path, url: str = "", settings: str = ""
) -> Iterator[ClusterTeam]:
    """`url`: of its database; else SQLite among its state. `settings`: more lines under `team`."""
    words = ("--engine", "kubernetes", "--kubeconfig", str(cluster.admin_kubeconfig))
    database = url or f"sqlite:///{folder}/home/records.db"
    team = ClusterTeam(cluster, TeamProcess(folder, database, *words, settings=settings).start())
    try:
        yield team
    finally:
        team.leave()
