"""A control plane on loopback: etcd, kube-apiserver, and as asked controllers, scheduler, kwok.

Everything is real but the nodes (see `kwok` and `node`). Addresses of pods and services come from
198.18.0.0/15, the range set aside for test networks, never from one a machine may really use.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.kubernetes.controlplane.access import Access
from tests.kubernetes.controlplane.build import build, program
from tests.kubernetes.controlplane.kubeconfig import MASTERS, User, write_token_file
from tests.kubernetes.controlplane.kwok import write_stages
from tests.kubernetes.controlplane.processes import ClusterProblem, Daemon, free_port

POD_RANGE = "198.18.0.0/16"
SERVICE_RANGE = "198.19.0.0/17"  # kwok nodes have their addresses above it
#: The same where all is IPv6, from the range that is private to a site.
POD_RANGE_V6 = "fd98::/56"
SERVICE_RANGE_V6 = "fd98:0:0:100::/108"
NODE_ADDRESS_V6 = "fd98:0:0:200::1"
#: The first address of the service range: what pods know as kubernetes.default.svc.
API_SERVICE_ADDRESS = "198.19.0.1"
NODE_ADDRESS = "198.18.255.1"
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_PORT_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class PlaneOptions:
    """What a control plane is made of. Extra arguments come last, so they win."""

    controller_manager: bool = True
    scheduler: bool = True
    kwok: bool = True
    #: ServiceAccount admission: pods get the namespace's account and a projected token.
    service_accounts: bool = False
    #: Kubernetes' own gang scheduling (alpha): PodGroup of scheduling.k8s.io/v1alpha2.
    native_gangs: bool = False
    #: kwok holds a pod that names a ConfigMap in CreateContainerConfigError until it carries this
    #: annotation, as a kubelet does until the ConfigMap exists and the pod is touched.
    barrier_annotation: str | None = None
    #: Pods, Services and nodes have IPv6 addresses and no others. Only kwok nodes can.
    ipv6: bool = False
    #: Users beside `admin`; what each may do is for RBAC objects to say.
    users: tuple[User, ...] = ()
    apiserver_args: tuple[str, ...] = ()
    controller_manager_args: tuple[str, ...] = ()
    scheduler_args: tuple[str, ...] = ()
    kwok_args: tuple[str, ...] = ()


class ControlPlane(Access):
    """`with ControlPlane() as plane:` starts one; at the end it is stopped and its folder removed.

    With a folder of your own the logs stay there. Each part is a `Daemon`:
    `plane.apiserver.pause()` freezes the API server, `plane.scheduler.stop()` takes it away.
    """

    def __init__(self, options: PlaneOptions | None = None, folder: Path | None = None) -> None:
        self.options = options or PlaneOptions()
        self._owns_folder = folder is None
        super().__init__(
            folder or Path(tempfile.mkdtemp(prefix="regatta-plane-")),
            url="",
            users=[User("admin", (MASTERS,)), *self.options.users],
        )
        self.logs = self.folder / "logs"
        self.parts: list[Daemon] = []  # in the order of their start
        self.etcd: Daemon
        self.apiserver: Daemon
        self.controller_manager: Daemon | None = None
        self.scheduler: Daemon | None = None
        self.kwok: Daemon | None = None
        self.etcd_port = self.port = 0

    def restart_apiserver(self, *, crash: bool = False) -> None:
        """Stop (or kill) the API server and start it again on the same port and data."""
        if crash:
            self.apiserver.kill()
        else:
            # Its graceful end waits for watches that others keep open; we need not.
            self.apiserver.stop(grace_seconds=2)
        self.apiserver.start()
        self._wait_for_apiserver()

    def __enter__(self) -> ControlPlane:
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
        build("etcd", "kube-apiserver", "kubectl", *self._wanted())
        self.logs.mkdir(parents=True, exist_ok=True)
        write_token_file(self.folder / "tokens.csv", list(self.users.values()))
        _make_signing_key(self._signing_key)
        try:
            self._start_on_free_ports()
            kubeconfig = self.admin_kubeconfig
            if self.options.controller_manager:
                self.controller_manager = self._add(self._controller_manager(kubeconfig))
            if self.options.scheduler:
                self.scheduler = self._add(self._scheduler(kubeconfig))
            if self.options.kwok:
                self.kwok = self._add(self._kwok(kubeconfig))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, the API server before etcd: without etcd it would hang in its stop."""
        self.close()
        while self.parts:
            self.parts.pop().stop()
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _wanted(self) -> list[str]:
        options = self.options
        parts = {
            "kube-controller-manager": options.controller_manager,
            "kube-scheduler": options.scheduler,
            "kwok": options.kwok,
        }
        return [name for name, wanted in parts.items() if wanted]

    def _start_on_free_ports(self) -> None:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                self.etcd = self._add(self._etcd())
                self.port = free_port()
                self.url = f"https://127.0.0.1:{self.port}"
                self.apiserver = self._add(self._apiserver())
                self._wait_for_apiserver()
                return
            except ClusterProblem as problem:
                taken = "address already in use" in str(problem).lower()
                if not taken or attempt == _PORT_ATTEMPTS:
                    raise
                self._forget_attempt()

    def _forget_attempt(self) -> None:
        while self.parts:
            self.parts.pop().kill()
        self.close()
        self._apis.clear()  # they knock on the port that was taken
        for part in ("etcd", "apiserver"):
            (self.logs / f"{part}.log").unlink(missing_ok=True)

    def _add(self, part: Daemon) -> Daemon:
        part.start()
        self.parts.append(part)
        return part

    def _wait_for_apiserver(self) -> None:
        # Every start serves the same certificate, but the first has still to write it.
        def ready() -> bool:
            if not self.etcd.alive:
                raise ClusterProblem(f"etcd ended. Its log ends with:\n{self.etcd.last_words()}")
            if not self.ca_file.exists():
                return False
            with contextlib.suppress(Exception):
                return self.api.raw("GET", "/readyz")[0] == 200
            return False

        self.apiserver.wait_until(ready, what="/readyz")
        self._wait_for_namespace()

    def _wait_for_namespace(self) -> None:
        # Objects sent before this exists are refused, and /readyz does not wait for it.
        self.api.wait_for(
            "/api/v1/namespaces/default", lambda seen: seen is not None, what="the namespace"
        )

    @property
    def _signing_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def _service_range(self) -> str:
        return SERVICE_RANGE_V6 if self.options.ipv6 else SERVICE_RANGE

    # The parts

    def _daemon(self, name: str, *arguments: str | Path) -> Daemon:
        short = name.removeprefix("kube-")
        return Daemon(name, [program(name), *arguments], self.logs / f"{short}.log")

    def _etcd(self) -> Daemon:
        self.etcd_port, peer_port = free_port(), free_port()
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{peer_port}"
        return self._daemon(
            "etcd",
            *("--name", "test", "--data-dir", self.folder / "etcd"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"test={peer}", "--log-level", "warn"),
            "--unsafe-no-fsync",
        )

    def _apiserver(self) -> Daemon:
        options = self.options
        arguments = [
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--advertise-address={NODE_ADDRESS_V6 if options.ipv6 else NODE_ADDRESS}",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={self._signing_key}",
            f"--service-account-signing-key-file={self._signing_key}",
            f"--service-account-issuer={_ISSUER}",
            f"--service-cluster-ip-range={self._service_range}",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
        ]
        if not options.service_accounts:
            arguments.append("--disable-admission-plugins=ServiceAccount")
        if options.native_gangs:
            arguments.append("--feature-gates=GenericWorkload=true,GangScheduling=true")
            arguments.append("--runtime-config=scheduling.k8s.io/v1alpha2=true")
        return self._daemon("kube-apiserver", *arguments, *options.apiserver_args)

    def _controller_manager(self, kubeconfig: Path) -> Daemon:
        arguments = [
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self.ca_file}",
            f"--cluster-cidr={POD_RANGE_V6 if self.options.ipv6 else POD_RANGE}",
            f"--service-cluster-ip-range={self._service_range}",
            "--allocate-node-cidrs=true",
            # Its default, 20 a second, is for clusters whose controllers share an API server.
            "--kube-api-qps=300",
            "--kube-api-burst=600",
        ]
        if self.options.native_gangs:
            arguments.append("--feature-gates=GenericWorkload=true")
        return self._daemon(
            "kube-controller-manager", *arguments, *self.options.controller_manager_args
        )

    def _scheduler(self, kubeconfig: Path) -> Daemon:
        arguments = [
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]
        if self.options.native_gangs:
            arguments.append("--feature-gates=GenericWorkload=true,GangScheduling=true")
        return self._daemon("kube-scheduler", *arguments, *self.options.scheduler_args)

    def _kwok(self, kubeconfig: Path) -> Daemon:
        config = write_stages(self.folder / "kwok.yaml", self.options.barrier_annotation)
        return self._daemon(
            "kwok",
            f"--kubeconfig={kubeconfig}",
            f"--config={config}",
            # Not all nodes: a test may bring a real one, or one that nothing looks after.
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-ip={NODE_ADDRESS}",
            f"--cidr={POD_RANGE}",
            *self.options.kwok_args,
        )


def _make_signing_key(path: Path) -> None:
    if path.exists():
        return
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ClusterProblem(
            "no `openssl` on PATH to make the service-account key; install the openssl package"
        )
    subprocess.run(
        [openssl, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path],
        check=True,
        capture_output=True,
    )
    path.chmod(0o600)


def wait_for_controllers(plane: ControlPlane, deadline_seconds: float = 60) -> None:
    """Until the controller manager has made the default ServiceAccount, so its loops run."""
    plane.api.wait_for(
        "/api/v1/namespaces/default/serviceaccounts/default",
        lambda seen: seen is not None,
        what="the default ServiceAccount",
        deadline_seconds=deadline_seconds,
    )
