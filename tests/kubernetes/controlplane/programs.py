"""Which programs a test cluster is made of, and from which pinned Go module each is built.

One folder beside this file per project: what the projects depend on does not agree.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent
KUBERNETES_VERSION = "v1.36.3"

_STRIP = ("-s", "-w")
_KUBERNETES_LDFLAGS = (
    # Without these the API server calls itself v0.0.0.
    *_STRIP,
    *("-X", f"k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"),
    *("-X", "k8s.io/component-base/version.gitMajor=1"),
    *("-X", "k8s.io/component-base/version.gitMinor=36"),
    *("-X", f"k8s.io/client-go/pkg/version.gitVersion={KUBERNETES_VERSION}"),
)


@dataclass(frozen=True, slots=True)
class Module:
    """One Go module of ours, the programs it builds, and the data files worth keeping."""

    name: str
    programs: dict[str, str]
    ldflags: tuple[str, ...] = _STRIP
    #: Files kept from a module's source: (module path, folder in it, name under which it is kept).
    keep: tuple[tuple[str, str, str], ...] = ()
    #: Modules that the public checksum database does not know; go.sum pins them all the same.
    unlisted: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    def digest(self) -> str:
        """Changes whenever something changes that the programs are built from."""
        digest = hashlib.sha256(repr((self.programs, self.ldflags, self.keep)).encode())
        for source in sorted(self.folder.iterdir()):
            if source.name in {"go.mod", "go.sum"} or source.suffix == ".go":
                digest.update(source.name.encode() + b"\0" + source.read_bytes())
        return digest.hexdigest()[:16]


_K8S = "k8s.io/kubernetes/cmd"

MODULE_LIST = (
    Module("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Module(
        "kubernetes",
        {
            "kube-apiserver": f"{_K8S}/kube-apiserver",
            "kube-controller-manager": f"{_K8S}/kube-controller-manager",
            "kube-scheduler": f"{_K8S}/kube-scheduler",
            "kubectl": f"{_K8S}/kubectl",
            "kubelet": f"{_K8S}/kubelet",
        },
        ldflags=_KUBERNETES_LDFLAGS,
    ),
    Module("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
    Module("helm", {"helm": "helm.sh/helm/v3/cmd/helm"}),
    Module("pause", {"pause": "."}),
    Module("coredns", {"coredns": "."}),
    Module(
        "volcano",
        {
            "volcano-scheduler": "volcano.sh/volcano/cmd/scheduler",
            "volcano-controller-manager": "volcano.sh/volcano/cmd/controller-manager",
        },
        keep=(("volcano.sh/volcano", "config/crd/volcano/bases", "volcano-crds"),),
    ),
    Module(
        "upstream-operator",
        {"upstream-operator": "github.com/paddleflow/paddle-operator"},
        keep=(("github.com/paddleflow/paddle-operator", "deploy/v1", "upstream-operator-deploy"),),
        unlisted=("github.com/paddleflow/paddle-operator",),
    ),
    Module(
        "training-operator",
        {"training-operator": "github.com/kubeflow/training-operator/cmd/training-operator.v1"},
        keep=(
            (
                "github.com/kubeflow/training-operator",
                "manifests/base/crds",
                "training-operator-crds",
            ),
        ),
    ),
)
MODULES_BY_NAME = {module.name: module for module in MODULE_LIST}
#: What tests and people need. The two peer operators are built when a benchmark asks for them.
CLUSTER = ("etcd", "kubernetes", "kwok", "pause", "coredns", "volcano", "helm")


def module_of(name: str) -> Module:
    """The module of that name, or the one that builds the program of that name."""
    for module in MODULE_LIST:
        if name == module.name or name in module.programs or name in {k[2] for k in module.keep}:
            return module
    known = ", ".join(MODULES_BY_NAME)
    raise KeyError(f"no module or program is called {name!r}; there are: {known}")
