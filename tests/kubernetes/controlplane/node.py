"""One real node on a control plane: kubelet, containerd and runc, a pod network, and names.

Root on Debian only. There is one at a time on a machine: its addresses and devices are fixed.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tests.kubernetes.controlplane import images, machine
from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.build import build, program
from tests.kubernetes.controlplane.plane import API_SERVICE_ADDRESS, NODE_ADDRESS
from tests.kubernetes.controlplane.processes import ClusterProblem, Daemon

NAME = "real"
SOCKET = machine.FOLDER / "containerd.sock"
_LOCK = Path("/var/lock/regatta-node.lock")


class RealNode:
    """`with RealNode(plane):` brings the node; it is Ready when this returns.

    The plane wants `PlaneOptions(service_accounts=True)` if pods are to talk to the API server,
    and a controller manager, which gives the node its pod range.
    """

    def __init__(self, plane: Access, *, patience_seconds: float = 0) -> None:
        """`patience_seconds` is how long to wait for another node on this machine to go."""
        self._plane = plane
        self._patience = patience_seconds
        self._folder = machine.FOLDER
        self._logs = plane.folder / "logs"
        self._parts: list[Daemon] = []
        self._lock: IO[str] | None = None

    def __enter__(self) -> RealNode:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        reason = machine.why_no_real_node()
        if reason is not None:
            raise ClusterProblem(reason)
        machine.install_packages()
        build("kubelet", "coredns", "pause")
        self._lock = _only_node(self._patience)
        try:
            machine.sweep()  # what a killed one left
            self._folder.mkdir(mode=0o700)
            machine.make_device(NODE_ADDRESS, API_SERVICE_ADDRESS)
            self._start_containerd()
            self._start_api_service()
            self._start_names()
            self._start_kubelet()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Take the node away with everything on it. Its Node object stays, NotReady."""
        while self._parts:
            self._parts.pop().stop(grace_seconds=5)
        machine.sweep()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _add(self, name: str, *command: str | Path, **environment: str) -> Daemon:
        part = Daemon(name, command, self._logs / f"node-{name}.log", environment)
        part.start()
        self._parts.append(part)
        return part

    def _start_containerd(self) -> None:
        config = self._folder / "containerd.toml"
        config.write_text(_containerd_config(self._folder))
        containerd = self._add("containerd", "containerd", "--config", config)
        containerd.wait_until(_containerd_answers, what="an answer on its socket")
        import_archive(images.write_pause_image(self._folder / "pause.tar"))

    def _start_api_service(self) -> None:
        target = self._plane.url.removeprefix("https://")
        command = (sys.executable, "-m", "tests.kubernetes.controlplane.forward")
        service = f"{API_SERVICE_ADDRESS}:443"
        carrier = self._add("api-service", *command, service, target, PYTHONPATH=_ROOT)
        carrier.wait_until(lambda: _listens(API_SERVICE_ADDRESS, 443), what="its port")

    def _start_names(self) -> None:
        corefile = self._folder / "Corefile"
        corefile.write_text(
            f"""cluster.local:53 {{
    bind {NODE_ADDRESS}
    errors
    ready {NODE_ADDRESS}:8181
    kubernetes cluster.local {{
        kubeconfig {self._plane.admin_kubeconfig} test
        ttl 0
    }}
}}
"""
        )
        names = self._add("coredns", program("coredns"), "-conf", corefile)
        names.wait_until(_names_are_served, what="its readiness")

    def _start_kubelet(self) -> None:
        config = self._folder / "kubelet.json"
        config.write_text(json.dumps(_kubelet_config(self._folder, machine.make_cgroup())))
        (self._folder / "resolv.conf").touch()
        kubelet = self._add(
            "kubelet",
            program("kubelet"),
            f"--config={config}",
            f"--kubeconfig={self._plane.admin_kubeconfig}",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE_ADDRESS}",
            f"--root-dir={self._folder / 'kubelet'}",
            f"--cert-dir={self._folder / 'kubelet-pki'}",
        )
        kubelet.wait_until(lambda: bool(self._pod_range()), what="the node's pod range")
        network = self._folder / "cni" / "10-pods.conflist"
        network.parent.mkdir(exist_ok=True)  # containerd may have made it, to watch it
        network.write_text(json.dumps(_network(self._folder, self._pod_range())))
        kubelet.wait_until(self._is_ready, what="a Ready node")

    def _node(self) -> dict[str, Any]:
        found: dict[str, Any] = self._plane.api.find(f"/api/v1/nodes/{NAME}") or {}
        return found

    def _pod_range(self) -> str:
        return str(self._node().get("spec", {}).get("podCIDR", ""))

    def _is_ready(self) -> bool:
        conditions = self._node().get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def sweep_leftovers() -> None:
    """Remove what a killed node left on this machine, unless one lives."""
    if machine.FOLDER.exists() and machine.why_no_real_node() is None:
        with contextlib.suppress(ClusterProblem), _only_node(patience_seconds=0):
            machine.sweep()


def import_archive(archive: Path) -> None:
    """Give the node an image from an archive; works from any process on this machine."""
    _ctr("images", "import", "--no-unpack", archive)


def import_image(tag: str) -> str:
    """Give the node an image that podman built (see `images.build_image`); returns its tag.

    Pods use it with `imagePullPolicy: IfNotPresent` or `Never`.
    """
    import_images(tag)
    return tag


def import_images(*tags: str) -> None:
    """Give the node several at once, which is quicker where they share layers."""
    archive = machine.FOLDER / f"import-{os.getpid()}-{time.monotonic_ns()}.tar"
    try:
        import_archive(images.save_images(archive, *tags))
    finally:
        archive.unlink(missing_ok=True)


def _ctr(*arguments: str | Path) -> str:
    return machine.run("ctr", "--address", SOCKET, "--namespace", "k8s.io", *arguments)


def _containerd_answers() -> bool:
    if not SOCKET.exists():
        return False
    with contextlib.suppress(RuntimeError):
        _ctr("version")
        return True
    return False


def _listens(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
        return True
    return False


def _names_are_served() -> bool:
    connection = http.client.HTTPConnection(NODE_ADDRESS, 8181, timeout=2)
    with contextlib.suppress(OSError), contextlib.closing(connection):
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    return False


def _only_node(patience_seconds: float) -> IO[str]:
    lock = _LOCK.open("w")
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.2)
                continue
            lock.close()
            raise ClusterProblem(
                f"another real node runs on this machine (it holds {_LOCK}); "
                "stop it first, for example with `make kube-down`"
            ) from None


_ROOT = str(Path(__file__).parents[3])


def _containerd_config(folder: Path) -> str:
    return f"""version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "{SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.PAUSE}"
  # Lowering a score needs CAP_SYS_RESOURCE, which a container around all this may lack.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{machine.PLUGINS}"
    conf_dir = "{folder}/cni"
"""


def _kubelet_config(folder: Path, cgroup: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "healthzBindAddress": NODE_ADDRESS,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": False,
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        # A full disk or a busy machine is no reason to evict a test's pods.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "podLogsDir": f"{folder}/logs",
        "resolvConf": f"{folder}/resolv.conf",
        "volumePluginDir": f"{folder}/volume-plugins",
    }


def _network(folder: Path, pod_range: str) -> dict[str, Any]:
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": machine.POD_DEVICE,
                "isGateway": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": f"{folder}/addresses",
                    "ranges": [[{"subnet": pod_range}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "loopback"},
        ],
    }
