"""What to do about a submission that cannot run here, in words that help whoever sent it: somebody
at this machine, or a member of a team, whose server refuses options about their own machine."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol


class Submitted(Protocol):
    """A shell, or what is kept of one."""

    @property
    def run_as(self) -> Any: ...
    @property
    def folders(self) -> Sequence[str] | None: ...
    @property
    def images(self) -> Mapping[str, str] | None: ...


@dataclass(frozen=True, slots=True)
class Advice:
    on_behalf: bool
    #: Of a script or program that is not in the folder where the job starts.
    script: str
    program: str
    #: Of a program that is not on PATH.
    path: str
    #: Of a path that may be one of the image's.
    image_path: str
    paddle: str
    command: str
    workdir: str
    fewer_gpus: str
    no_runtime: str
    without_runtime: str
    no_image: str
    #: As whom the job runs, if not as whom the engine does.
    run_as: Any = None

    def closed(self, path: str) -> str:
        """Of a folder or file that the job cannot use."""
        shown, who = shlex.quote(path), self.run_as
        if who is None:
            cannot = f"{path} cannot be read by the user as whom the job runs"
            return f"{cannot}; open it, with `chmod o+rX {shown}`"
        return (
            f"{path} cannot be read by {who.name}, as whom the job runs; have its owner open it, "
            f"with `chmod o+rX {shown}` or `chown {who.uid} {shown}`, or use a folder of "
            f"{who.name}'s own, such as {who.home}"
        )

    def volume(self, name: str) -> str:
        if self.on_behalf:
            return f"have volume {name} be a hostPath of the server's machine that the job may use"
        return f"give a folder with --volume {name}=DIR"

    def more_cpus(self, millicores: int, memory: int = 0) -> str:
        """`memory`: in bytes, where there is not enough of that either."""
        if self.on_behalf:
            return f"Ask for less, or for fewer replicas; or {_ASK} about its capacity."
        counted = f"REGATTA_CPUS={math.ceil(millicores / 1000)}"
        if memory:
            counted += f" REGATTA_MEMORY={math.ceil(memory / _GI)}Gi"
        return (
            "Ask for less, or for fewer replicas; or let the machine count more than it has: "
            f"`{counted} regatta server restart`."
        )

    def more_pods(self, pods: int) -> str:
        if self.on_behalf:
            return f"Ask for fewer replicas, or {_ASK} about its capacity."
        return (
            "Ask for fewer replicas, or let the machine take more, with a server that is started "
            f"so: `regatta server stop; REGATTA_PODS={pods} regatta server start`."
        )


_GI = 1 << 30
_ASK = "ask whoever runs the server"
_CODE = (
    "Put the code where the server's machine can read it, and name that folder as the container's "
    "workingDir or as a hostPath volume; OpenPAI's configs name it as codeDir, below "
    "$PAI_DEFAULT_FS_URI. Or let the command fetch it, or bring it in an image to a server with "
    "--isolation container."
)
AT_HOME = Advice(
    on_behalf=False,
    script="Name the folder that holds it with `--workdir DIR`, or set the container's workingDir.",
    program="Check its spelling, or name its folder with `--workdir DIR`.",
    path="Check its spelling, or submit from a shell in which it works.",
    image_path="say what to run here with `--command LINE`, or put the script there.",
    paddle="Activate the environment that has PaddlePaddle before you submit, or name its "
    "interpreter with `--python PATH`.",
    command="write command in the file, say it with --command, or run the image with --runtime "
    "docker (or podman)",
    workdir="name the folder that holds the program, or leave it out to run where the job file is",
    fewer_gpus="Ask for fewer GPUs, or try it out without any with `--no-gpu`.",
    no_runtime="Install it, or leave --runtime out to run the commands as processes of this "
    "machine.",
    without_runtime="Without --runtime the commands run as processes of this machine.",
    no_image="--runtime {} runs images",
)
_MEMBER = Advice(
    on_behalf=True,
    script=_CODE,
    program=f"Check its spelling. {_CODE}",
    path=f"Check its spelling, name it by its whole path, or {_ASK} to install it.",
    image_path="say what to run on the server's machine with `--command LINE`, or put the script "
    "there.",
    paddle="Name by its path, in the job's command, an interpreter of the server's machine that "
    f"has PaddlePaddle; or {_ASK} which image stands for one (images:).",
    command="write command in the file, or say it with --command; only a server with --isolation "
    "container runs what an image brings",
    workdir=f"it is the job's own folder on the server; {_ASK}",
    fewer_gpus=f"Ask for fewer GPUs, or {_ASK} about its capacity.",
    no_runtime=f"The server needs it: {_ASK}.",
    without_runtime=f"The server needs it: {_ASK}.",
    no_image="this server runs images, with {}",
)


def advice_for(submitted: Submitted) -> Advice:
    """Only a server says as whom a job runs, with which folders, and what an image stands for."""
    on_behalf = (submitted.run_as, submitted.folders, submitted.images) != (None, None, None)
    return replace(_MEMBER, run_as=submitted.run_as) if on_behalf else AT_HOME
