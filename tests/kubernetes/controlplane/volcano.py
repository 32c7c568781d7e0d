"""Volcano's real scheduler on a control plane, with its CRDs."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.build import build, kept, program
from tests.kubernetes.controlplane.processes import Daemon, free_port

_GROUPS = "/apis/scheduling.volcano.sh/v1beta1"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Volcano:
    """`with Volcano(plane):` installs the CRDs and runs the scheduler beside the plane's own.

    Ready when this returns: the queue `default` exists, which the scheduler makes at its start.
    """

    def __init__(self, plane: Access) -> None:
        self._plane = plane
        self.scheduler: Daemon

    def __enter__(self) -> Volcano:
        build("volcano")
        self._plane.kubectl("apply", "--server-side", "-f", str(kept("volcano-crds")))
        for crd in self._plane.api.items(_CRDS):
            path = f"{_CRDS}/{crd['metadata']['name']}"
            self._plane.api.wait_for(path, _is_established, what="Established")
        settings = self._plane.folder / "volcano-scheduler.conf"
        settings.touch()  # an empty one means Volcano's own defaults
        self.scheduler = Daemon(
            "volcano-scheduler",
            [
                program("volcano-scheduler"),
                f"--kubeconfig={self._plane.admin_kubeconfig}",
                f"--scheduler-conf={settings}",
                "--leader-elect=false",
                f"--listen-address=127.0.0.1:{free_port()}",
                "--enable-healthz=false",
                "--schedule-period=200ms",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
            ],
            self._plane.folder / "logs" / "volcano-scheduler.log",
        )
        self.scheduler.start()
        try:
            self.scheduler.wait_until(self._has_its_queue, what="the queue `default`")
        except BaseException:
            self.scheduler.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.scheduler.stop(grace_seconds=3)

    def _has_its_queue(self) -> bool:
        return self._plane.api.find(f"{_GROUPS}/queues/default") is not None


def _is_established(crd: Any) -> bool:
    # `kubectl wait` gives up on an object that has no conditions yet.
    conditions = crd.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
