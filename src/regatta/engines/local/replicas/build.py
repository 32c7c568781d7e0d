"""From a pod to the processes that play it on this machine.

Decides and starts nothing; it looks at the file system only to say early what would fail. So the
same function serves a check at submit, the dry run and the start.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import regatta._inject
from regatta.api import quantity
from regatta.api.errors import InvalidJob
from regatta.api.problems import Problem
from regatta.api.source.companions import Companions
from regatta.controller.environment.references import expand
from regatta.engines.base import RunAs
from regatta.engines.local.on_behalf.bounds import not_for_a_runtime, widened_rights
from regatta.engines.local.on_behalf.interpreters import Interpreters
from regatta.engines.local.on_behalf.looking import Looking
from regatta.engines.local.on_behalf.members_advice import advice_for
from regatta.engines.local.on_behalf.own_folders import account_of, describe_own
from regatta.engines.local.replicas import containers
from regatta.engines.local.replicas.runspec import (
    PADDLE_LOGS_FOLDER,
    PROGRESS_FILE,
    Account,
    Group,
    Mount,
    Process,
    RunSpec,
    gpu_hold,
    port_hold,
)
from regatta.engines.local.replicas.variables import (
    PodFacts,
    Variables,
    inherited,
    inherited_by_client,
)
from regatta.engines.local.replicas.volumes import (
    SHARED_MEMORY,
    Volumes,
    is_there_already,
    take_shared_memory,
)
from regatta.engines.local.store.secrets_file import NONE, Secrets

#: The folder that holds just what a training program may import of us.
PROGRESS_PATH = str(Path(regatta._inject.__file__).parent)
#: Where a container sees that folder.
PROGRESS_PATH_IN_CONTAINER = "/opt/regatta"
DEFAULT_GRACE_SECONDS = 30.0
#: What only jobs of tasks have, whose programs know GPUs by one more name.
_OF_A_TASK = "PAI_TASK_INDEX"


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where the scheduler put a replica."""

    address: str
    port_base: int
    gpus: tuple[str, ...] = ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What was true where the job was submitted; kept with the job."""

    directory: str = "/"
    shell: dict[str, str] = {}
    python: str | None = None
    #: `--volume name=dir`
    volumes: dict[str, str] = {}
    #: none (processes of this machine), docker or podman.
    runtime: str = "none"
    #: PersistentVolumes and claims of the same file.
    companions: Companions = Companions()
    secrets: Secrets = NONE
    #: Of a server that takes other people's jobs; see `Shell`.
    run_as: RunAs | None = None
    folders: tuple[str, ...] | None = None
    library: str = ""
    images: dict[str, str] | None = None
    given: dict[str, str] = {}

    @property
    def is_plain_container(self) -> bool:
        """One of many people's on this machine, which gets no more than that."""
        return self.runtime in containers.RUNTIMES and self.folders is not None


def build_run(
    manifest: dict[str, Any],
    *,
    placement: Placement,
    environments: Mapping[str, Mapping[str, str]],
    context: Context,
    folder: Path,
    run: int = 0,
    own: Path | None = None,
    looking: Looking | None = None,
) -> RunSpec:
    """The run that plays this pod, whose uid is in its metadata. `folder` is the run folder, `own`
    where its processes write if not there, `environments` the data of the ConfigMaps that this job
    owns, by name. Raises InvalidJob with every problem, paths into the pod
    (`spec.containers[0].command`)."""
    spec, problems = draft_run(
        manifest,
        placement=placement,
        environments=environments,
        context=context,
        folder=folder,
        run=run,
        own=own,
        looking=looking,
    )
    if problems:
        raise InvalidJob(problems)
    return spec


def draft_run(
    manifest: dict[str, Any],
    *,
    placement: Placement,
    environments: Mapping[str, Mapping[str, str]],
    context: Context,
    folder: Path,
    run: int = 0,
    own: Path | None = None,
    looking: Looking | None = None,
) -> tuple[RunSpec, list[Problem]]:
    """The same as far as it can be had, and why it cannot be started: what has no command has no
    words."""
    looking = looking or Looking()
    builder = _Builder(manifest, placement, environments, context, folder, run, own, looking)
    spec = builder.build()
    return spec, builder.problems


class _Builder:
    def __init__(
        self,
        manifest: dict[str, Any],
        placement: Placement,
        environments: Mapping[str, Mapping[str, str]],
        context: Context,
        folder: Path,
        run: int,
        own: Path | None,
        looking: Looking,
    ) -> None:
        metadata = manifest.get("metadata") or {}
        self._spec: dict[str, Any] = manifest.get("spec") or {}
        self._name: str = metadata.get("name", "")
        self._run_id = f"{metadata.get('uid', '')}/{run}"
        self._placement = placement
        self._environments = environments
        self._context = context
        self._folder = folder
        #: Where its processes write.
        self._own = own or folder
        self._looking = looking
        self._interpreters = Interpreters(
            context.directory, context.python, context.images, looking
        )
        who = context.run_as
        self._account: Account | None = None
        if who is not None:
            ours = (context.directory, str(self._own), SHARED_MEMORY)
            self._account = account_of(who, context.folders, ours)
        self._facts = PodFacts(
            manifest=manifest, uid=metadata.get("uid", ""), address=placement.address
        )
        self._advice = advice_for(context)
        self._volumes = Volumes(
            self._spec,
            namespace=metadata.get("namespace") or "default",
            overrides=context.volumes,
            companions=context.companions,
            directory=context.directory,
            folder=self._own,
            looking=looking,
            allowed=context.folders,
            whole=context.is_plain_container,
            reader=who.name if who else "",
            advice=self._advice,
        )
        self.problems: list[Problem] = []

    def build(self) -> RunSpec:
        init: list[Process] = []
        beside: list[Process] = []
        for number, container in enumerate(self._spec.get("initContainers") or ()):
            process = self._process(container, f"spec.initContainers[{number}]", ())
            # An init container that always restarts is a sidecar: it runs beside the others.
            (beside if container.get("restartPolicy") == "Always" else init).append(process)
        main, free = [], list(self._placement.gpus)
        for number, container in enumerate(self._spec.get("containers") or ()):
            count = _gpus_asked(container)
            mine, free = free[:count], free[count:]
            main.append(self._process(container, f"spec.containers[{number}]", mine))
        if not main:
            self._refuse("spec.containers", "is empty; a pod needs a container to run")
        self.problems += self._volumes.problems
        if self._context.is_plain_container:
            self.problems += widened_rights(self._spec)
        paddle_logs = str(self._own / PADDLE_LOGS_FOLDER)
        grace = self._spec.get("terminationGracePeriodSeconds")
        return RunSpec(
            run_id=self._run_id,
            pod=self._name,
            folder=str(self._folder),
            init=tuple(init),
            containers=(*main, *beside),
            restart_policy=self._spec.get("restartPolicy") or "Never",
            grace_seconds=DEFAULT_GRACE_SECONDS if grace is None else float(grace),
            holds=(port_hold(self._placement.port_base), *map(gpu_hold, self._placement.gpus)),
            group=self._bounds(),
            tail_folders=(paddle_logs,),
            make_folders=tuple(self._volumes.folders),
            secrets_file=self._context.secrets.file,
            own=None
            if self._own == self._folder
            else describe_own(self._own, self._volumes.folders, self._account),
        )

    def _bounds(self) -> Group:
        if self._context.runtime in containers.RUNTIMES:
            return Group()  # limits are the container's, and the runtime's client has none
        most = quantity.limits({"spec": self._spec})
        return Group(memory_bytes=most.memory, cpus=most.cpu)

    def _process(
        self, container: dict[str, Any], path: str, gpus: list[str] | tuple[str, ...]
    ) -> Process:
        variables = Variables(self._facts, self._environments, path, self._context.secrets)
        theirs = variables.build(container)
        made = len(self._volumes.folders)
        mounts = self._volumes.mounts(container, path, lambda text: expand(text, theirs))
        command = variables.words(container, "command", theirs)
        args = variables.words(container, "args", theirs)
        self.problems += variables.problems
        if self._context.runtime in containers.RUNTIMES:
            played = self._in_container(
                container, path, theirs, mounts, command, args, gpus, variables.secret
            )
            return msgspec.structs.replace(played, secrets=variables.secret)
        mounts = [mount for mount in mounts if not is_there_already(mount, self._looking)]
        # It is not started; what would lie there need not be looked for on this machine.
        mounts += [Mount(source=os.devnull, target=target) for target in self._volumes.unmet]
        library = self._context.library or PROGRESS_PATH
        env = self._with_ours(self._of_shell(container), theirs, gpus, library)
        if _OF_A_TASK in theirs:  # in a container, whoever gives it the GPUs says so
            env.setdefault("NVIDIA_VISIBLE_DEVICES", env["CUDA_VISIBLE_DEVICES"])
        return Process(
            name=container.get("name", ""),
            argv=self._argv(container, path, command, args, env),
            env=env,
            cwd=self._working_directory(container, path, mounts),
            mounts=tuple(mounts),
            secrets=variables.secret,
            account=self._account,
            makes=tuple(self._volumes.folders[made:]) if self._account else (),
        )

    def _in_container(
        self,
        container: dict[str, Any],
        path: str,
        theirs: dict[str, str],
        mounts: list[Mount],
        command: list[str],
        args: list[str],
        gpus: list[str] | tuple[str, ...],
        secret: Iterable[str],
    ) -> Process:
        image, runtime = container.get("image") or "", self._context.runtime
        if not image:
            self._refuse(f"{path}.image", f"is missing; {self._advice.no_image.format(runtime)}")
        elif image.startswith("-"):
            self._refuse(f"{path}.image", f"is {image!r}, which {runtime} takes for an option")
        client = inherited_by_client(self._context.shell)
        client.setdefault("PATH", os.defpath)
        # A container sees its own GPUs alone, counted from 0. It has its own PATH and HOME as well;
        # only what the pod sets replaces them.
        numbers = map(str, range(len(gpus)))
        env = self._with_ours(self._context.given, theirs, numbers, PROGRESS_PATH_IN_CONTAINER)
        env["REGATTA_RUN"] = self._run_id
        ours = [
            Mount(source=PROGRESS_PATH, target=PROGRESS_PATH_IN_CONTAINER, read_only=True),
            *(Mount(source=shown, target=shown) for shown in self._shown()),
        ]
        options: tuple[str, ...] = ()
        working_dir = container.get("workingDir")
        if self._context.is_plain_container:
            self.problems += not_for_a_runtime(path, image, mounts, secret)
            mounts, memory = take_shared_memory(mounts, self._spec)
            options = (*containers.PLAIN, *memory)
            working_dir = working_dir or self._context.directory
        return containers.in_container(
            container,
            runtime=runtime,
            run_id=self._run_id,
            client=client,
            env=env,
            passed=tuple(secret),
            mounts=[*ours, *mounts],
            command=command,
            args=args,
            gpus=gpus,
            cwd=self._context.directory,
            working_dir=working_dir,
            options=options,
        )

    def _shown(self) -> tuple[str, ...]:
        """What of ours a container sees where it lies. What the engine itself goes by is not shown
        to a container that somebody else's program runs in."""
        if not self._context.is_plain_container:
            return (str(self._folder),)
        own = (str(self._own / name) for name in (PROGRESS_FILE, PADDLE_LOGS_FOLDER))
        return (*own, self._context.directory)

    def _of_shell(self, container: dict[str, Any]) -> dict[str, str]:
        ours = inherited(self._context.shell) | self._context.given
        ours.setdefault("PATH", os.defpath)
        if who := self._context.run_as:
            ours |= {"HOME": who.home, "USER": who.name, "LOGNAME": who.name}
        if chosen := self._interpreters.folder_of(container.get("image") or ""):
            # Whatever runs `python` inside a script should find the same one.
            ours["PATH"] = f"{chosen}:{ours['PATH']}"
            if os.path.dirname(chosen) != ours.get("VIRTUAL_ENV"):
                ours.pop("VIRTUAL_ENV", None)
        return ours

    def _with_ours(
        self, shell: dict[str, str], theirs: dict[str, str], gpus: Iterable[str], progress: str
    ) -> dict[str, str]:
        ours = shell | {
            "PYTHONUNBUFFERED": "1",
            # Gloo otherwise asks what the host name resolves to, which need not be anything.
            "GLOO_SOCKET_IFNAME": "lo",
            "PADDLE_LOG_DIR": str(self._own / PADDLE_LOGS_FOLDER),
            "CUDA_VISIBLE_DEVICES": ",".join(gpus),
            "REGATTA_PROGRESS": str(self._own / PROGRESS_FILE),
        }
        env = ours | theirs
        env["PYTHONPATH"] = ":".join(filter(None, (progress, theirs.get("PYTHONPATH"))))
        return env

    def _argv(
        self,
        container: dict[str, Any],
        path: str,
        command: list[str],
        args: list[str],
        env: Mapping[str, str],
    ) -> tuple[str, ...]:
        if not command:
            self._refuse(
                f"{path}.command",
                f"missing{', only args are there' if args else ''}. What the image "
                f"{container.get('image') or ''!r} starts is not known on this machine; "
                f"{self._advice.command}",
            )
            return ()
        program = command[0]
        if program in ("python", "python3"):
            image, search = container.get("image") or "", env.get("PATH", os.defpath)
            program = self._interpreters.choose(program, image, search)
        return (program, *command[1:], *args)

    def _working_directory(self, container: dict[str, Any], path: str, mounts: list[Mount]) -> str:
        wanted = container.get("workingDir") or ""
        base = self._context.directory
        directory = os.path.normpath(os.path.join(base, wanted))
        seen = any(
            directory == mount.target or directory.startswith(mount.target + "/")
            for mount in mounts
        )
        if seen:
            return directory
        if closed := self._looking.closed_at(directory):
            self._refuse(f"{path}.workingDir", self._advice.closed(closed))
            return directory
        if self._looking.is_folder(directory):
            return directory
        if not os.path.isabs(wanted) and not self._looking.is_folder(base):
            self._refuse(
                f"{path}.workingDir" if self._advice.on_behalf else "--workdir",
                f"{base} is not there; {self._advice.workdir}",
            )
        else:
            self._refuse(
                f"{path}.workingDir",
                f"{directory} is not there; leave it out to run in the job's directory "
                f"({base}), or mount a volume at it",
            )
        return directory

    def _refuse(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


def _gpus_asked(container: dict[str, Any]) -> int:
    asked = container.get("resources") or {}
    named = {**(asked.get("requests") or {}), **(asked.get("limits") or {})}
    return quantity.parse_count(named.get(quantity.GPU, 0))
