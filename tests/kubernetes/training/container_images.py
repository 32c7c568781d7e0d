"""The images of the operator, a team's server and the examples, from their own Dockerfiles, on the
real node.

Their names are the ones that the manifest and the job files give, so that these need no change.
podman keeps every layer it built: a build of what has not changed takes a second, and the layer
that holds Paddle is made once, for both examples.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

import yaml

from tests.kubernetes.controlplane.build import cache_folder
from tests.kubernetes.controlplane.images import build_image, remove_old_leftovers
from tests.kubernetes.controlplane.node import import_images
from tests.kubernetes.installation import OPERATOR, ROOT

TEAM_SERVER = ROOT / "deploy/v1/team-server.yaml"
WIDE_AND_DEEP = "regatta/wide-and-deep:latest"
RESNET = "regatta/resnet:latest"
#: What a node takes a name without a host for.
_HOST = "docker.io"


def operator_image() -> str:
    """The name that the manifest gives it."""
    return _image_in(OPERATOR)


def team_server_image() -> str:
    return _image_in(TEAM_SERVER)


def _image_in(manifest: Path) -> str:
    documents = yaml.safe_load_all(manifest.read_text())
    (deployment,) = (d for d in documents if d["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def build_images() -> None:
    """Build what is not built yet or has changed; one process at a time."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "training-images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, folder in _sources().items():
            parts = {"PARTS": "team-server"} if name == team_server_image() else {}
            build_image(folder, f"{_HOST}/{name}", build_args=parts)
        remove_old_leftovers()


def give_images_to_the_node() -> None:
    import_images(*(f"{_HOST}/{name}" for name in _sources()))


def _sources() -> dict[str, Path]:
    return {
        operator_image(): ROOT,
        team_server_image(): ROOT,
        WIDE_AND_DEEP: ROOT / "examples/wide_and_deep",
        RESNET: ROOT / "examples/resnet",
    }
