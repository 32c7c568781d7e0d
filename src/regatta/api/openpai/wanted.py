"""What a config asks for, and of whom, whichever protocol it is in: the middle of the way.

Reading v1 and v2 ends here, and `paddlejob` begins here. Each value knows the field that its author
wrote, so that what is found to be wrong with the job can be told there.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from regatta.api.problems import Problem


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the place that takes a config says of itself, and who hands it in."""

    #: Who submits the job. Variables name them, and where nobody is known they say `user`.
    user: str = ""
    #: What `$PAI_DEFAULT_FS_URI` stands for: a path, or a `file://` URI. Empty: not configured.
    default_fs_uri: str = ""
    #: It is for whoever runs the server to say, and not for whoever submits.
    fs_uri_is_servers: bool = False
    #: What whoever submits says all the same.
    unheard_fs_uri: str = ""
    #: Tasks run as an account of the machine that is the user's alone.
    accounts: bool = False

    @property
    def owner(self) -> str:
        return self.user or "user"


class WantedPort(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    count: int
    #: 0: any.
    begin_at: int = 0


class WantedRole(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    replicas: int
    image: str
    cpus: int
    memory_mb: int
    gpus: int
    #: The words that start it, as the process gets them.
    words: tuple[str, ...]
    #: Of the volume at /dev/shm; None: it has what a container has by itself.
    shm_mb: int | None = None
    #: What its variables say of that; None: as much as the volume has.
    told_shm_mb: int | None = None
    ports: tuple[WantedPort, ...] = ()
    #: `minFailed` and `minSucceeded`, as a PaddleJob has them.
    completion: dict[str, int | None] = {}
    #: Variables that hold a secret, and its key.
    secret_variables: tuple[tuple[str, str], ...] = ()
    #: Its image is in a registry that asks who one is.
    pulls_with_secret: bool = False
    #: Our field below `spec.tasks[i]` → the author's, as a whole path.
    marks: dict[str, str] = {}


class Registry(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to a registry of images."""

    registry: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Registry({self.registry!r})"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    protocol: Literal[1, 2]
    name: str
    user: str
    virtual_cluster: str
    roles: tuple[WantedRole, ...]
    #: The literal variables of every replica.
    variables: dict[str, str]
    #: The author's field that one of them comes from.
    variable_marks: dict[str, str] = {}
    #: `spec.runPolicy`, and what the job's network must be for it.
    run_policy: dict[str, Any] = {}
    intranet: str = ""
    gpu_type: str = ""
    secrets: dict[str, str] = {}
    registries: tuple[Registry, ...] = ()
    extras: dict[str, Any] = {}
    #: Where tasks write, as an account: the folder that has to be its own; empty: nobody says so.
    own_output: str = ""
    #: As it was written, with nothing in it that is secret.
    config: dict[str, Any] = {}
    warnings: tuple[Problem, ...] = ()
    #: Our field → the author's, of what is no role's.
    marks: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Wanted({self.user}~{self.name})"


def shared_variables(user: str, job: str, virtual_cluster: str, root: str) -> dict[str, str]:
    """What every replica is told, by OpenPAI's new names and by its old ones. What depends on the
    roles, their places and ports is the brain's to say."""
    whole = f"{user}~{job}"
    return {
        "PAI_JOB_NAME": whole,
        "PAI_FRAMEWORK_NAME": whole,
        "FRAMEWORK_NAME": whole,
        "PAI_USER_NAME": user,
        "PAI_USERNAME": user,
        "HADOOP_USER_NAME": user,
        "PAI_DEFAULT_FS_URI": root,
        "PAI_VIRTUAL_CLUSTER": virtual_cluster,
        "PAI_JOB_VC_NAME": virtual_cluster,
    }
