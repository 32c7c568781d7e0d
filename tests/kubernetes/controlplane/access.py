"""How tests and people reach a cluster that runs: kubeconfigs, plain requests, kubectl.

Apart from who started it, so that a test may use a cluster which another process holds.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane.api import Api
from tests.kubernetes.controlplane.build import program
from tests.kubernetes.controlplane.kubeconfig import User, write_kubeconfig
from tests.kubernetes.controlplane.kwok import KwokNodes
from tests.kubernetes.controlplane.processes import ClusterProblem
from tests.patience import Patience


class Access:
    """A cluster at `url` whose certificates, kubeconfigs and logs live in `folder`."""

    def __init__(self, folder: Path, url: str, users: list[User]) -> None:
        self.folder = folder
        self.url = url
        self.users = {user.name: user for user in users}
        self._apis: dict[str, Api] = {}

    @property
    def ca_file(self) -> Path:
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def admin_kubeconfig(self) -> Path:
        return self.kubeconfig("admin")

    def kubeconfig(self, user: str, namespace: str = "default") -> Path:
        """A kubeconfig for one of the plane's users."""
        return write_kubeconfig(
            self.folder / f"{user.replace(':', '_')}.kubeconfig",
            server=self.url,
            ca_file=self.ca_file,
            user=user,
            token=self.users[user].token,
            namespace=namespace,
        )

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig that speaks as a ServiceAccount, with a token that lasts ten hours."""
        token = self.service_account_token(namespace, name)
        return write_kubeconfig(
            self.folder / f"{namespace}_{name}.kubeconfig",
            server=self.url,
            ca_file=self.ca_file,
            user=f"system:serviceaccount:{namespace}:{name}",
            token=token,
            namespace=namespace,
        )

    def service_account_token(self, namespace: str, name: str, seconds: int = 36000) -> str:
        answer = self.api.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": seconds},
            },
        )
        return str(answer["status"]["token"])

    @property
    def api(self) -> Api:
        """Plain requests as `admin`."""
        return self.api_as("admin")

    def api_as(self, user: str) -> Api:
        if user not in self._apis:
            self._apis[user] = Api(self.url, self.ca_file, self.users[user].token)
        return self._apis[user]

    @property
    def nodes(self) -> KwokNodes:
        """Make nodes that kwok plays, or that nobody does."""
        return KwokNodes(self.api)

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,
        user: str = "admin",
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as a user; with `check`, a failure raises with what kubectl said."""
        ended = subprocess.run(
            [program("kubectl"), "--kubeconfig", self.kubeconfig(user), *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(self.folder)},  # its discovery cache stays in here
        )
        if check and ended.returncode != 0:
            raise ClusterProblem(f"kubectl {' '.join(arguments)}: {ended.stderr.strip()}")
        return ended

    def touch_in(self, namespace: str, pod: str, file: str) -> None:
        """What a program waits for. 137: it saw the file at once, and its container's end was that
        of `touch`, too."""
        ended = self.kubectl("exec", "-n", namespace, pod, "--", "touch", file, check=False)
        if ended.returncode not in (0, 137):
            raise ClusterProblem(f"touch {file} in {pod}: {ended.stderr.strip()}")

    def wait_until_known(self, resource: str, deadline_seconds: float = 60) -> None:
        """Until kubectl finds the kind of a CRD that is new: it is served a moment earlier."""
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        patience = Patience(deadline_seconds)
        while f'"resource":"{resource}"' not in self.api.raw("GET", "/apis", accept=accept)[1]:
            if patience.over:
                raise ClusterProblem(f"{resource} are not among the cluster's kinds")
            time.sleep(0.05)

    def create_namespace(self, name: str, labels: dict[str, str] | None = None) -> str:
        metadata: dict[str, Any] = {"name": name, "labels": labels or {}}
        self.api.create("/api/v1/namespaces", {"metadata": metadata})
        return name

    def close(self) -> None:
        """Let go of this thread's connections."""
        for api in self._apis.values():
            api.close()
