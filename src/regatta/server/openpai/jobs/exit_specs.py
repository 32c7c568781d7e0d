"""What OpenPAI's clients are told an exit code means: its table, in our own sentences.

Codes above zero are those of a task's command as it ended; those below are OpenPAI's own words for
ends that no command chose. What one may do about it is said in `solution`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from regatta.server.openpai.jobs.job_shapes import ExitSpec
from regatta.server.openpai_states import NO_EXIT_CODE, STOPPED_BY_USER

#: A task that was ended because this try of its job was over; one that used too much memory.
STOPPED_WITH_JOB, OUT_OF_MEMORY = -220, -1200
EVICTED, NODE_LOST, PREEMPTED = -1000, -1001, -1003
NOT_CREATED, NOT_STARTED, DELETED, LOST_FROM_SIGHT = -1201, -1204, -101, -8000
NO_ROOM, PORT_TAKEN = 251, 253

#: OpenPAI's older API has other numbers for the same ends.
IN_VERSION_ONE: Mapping[int, int] = {
    STOPPED_BY_USER: -7351,
    STOPPED_WITH_JOB: -7400,
    OUT_OF_MEMORY: 196,
    NOT_CREATED: 193,
    NOT_STARTED: 193,
    PORT_TAKEN: -7103,
    NO_ROOM: -7252,
    EVICTED: -7111,
    NODE_LOST: -7111,
    PREEMPTED: -7120,
}
_PHRASES_OF_VERSION_ONE: Mapping[str, str] = {
    "StopFrameworkRequested": "APP_STOP_FRAMEWORK_REQUESTED",
    "FrameworkAttemptCompletion": "TASK_STOPPED_ON_APP_COMPLETION",
    "PAIRuntimeUnknownFailed": "CONTAINER_RUNTIME_UNKNOWN_FAILURE",
    "PAIRuntimeExitAbnormally": "CONTAINER_RUNTIME_EXIT_ABNORMALLY",
    "PortConflict": "CONTAINER_PORT_CONFLICT",
    "JobGangAllocationTimeout": "AM_GANG_ALLOCATION_TIMEOUT",
    "PodEvicted": "CONTAINER_NODE_LOST",
    "PodNodeLost": "CONTAINER_NODE_LOST",
    "PodPreemptedForCriticalPod": "CONTAINER_PREEMPTED",
}

_BEHAVIORS_OF_VERSION_ONE = {"PERMANENT": "NON_TRANSIENT"}

_CAUSERS = {"PLATFORM_FAILURE": "PAI_HOST", "USER_STOP": "USER_STOP"}
_NEVER, _TO_MAX = "NEVER_RETRY", "RETRY_TO_MAX"
_READ_LOG = "Read the task's log: its last lines say what the command met."


def _spec(
    code: int,
    phrase: str,
    kind: str,
    reason: str,
    *solution: str,
    retried: bool = False,
    stage: str = "RUNNING",
    issuer: str = "USER_CONTAINER",
) -> ExitSpec:
    return ExitSpec(
        code=code,
        phrase=phrase,
        issuer=issuer,
        causer=_CAUSERS.get(kind, "USER_CONTAINER"),
        type=kind,
        stage=stage,
        behavior="UNKNOWN" if retried else "PERMANENT",
        reaction=_TO_MAX if retried else _NEVER,
        reason=reason,
        solution=solution,
    )


def _signal(number: int, name: str, *, users: bool) -> ExitSpec:
    kind = "USER_FAILURE" if users else "PLATFORM_FAILURE"
    said = f"The task's process was ended by {name} (signal {number})."
    advice = (
        (_READ_LOG, "Run the command where a debugger can be attached.")
        if users
        else ("Look whether somebody, or the machine, ended the process.",)
    )
    return _spec(128 + number, f"{name}Received", kind, said, *advice, retried=not users)


def _unclear(spec: ExitSpec) -> ExitSpec:
    """The same, where nobody can tell whose fault it was."""
    return replace(spec, type="UNKNOWN_FAILURE", behavior="UNKNOWN", reaction=_TO_MAX)


def _user(code: int, phrase: str, reason: str, *solution: str) -> ExitSpec:
    return _spec(code, phrase, "USER_FAILURE", reason, *(solution or (_READ_LOG,)))


def _platform(code: int, phrase: str, reason: str, *, retried: bool, stage: str) -> ExitSpec:
    return _spec(
        code,
        phrase,
        "PLATFORM_FAILURE",
        reason,
        "Submit the job again; if that repeats itself, tell whoever runs the cluster.",
        retried=retried,
        stage=stage,
        issuer="PAI_RUNTIME",
    )


_UNKNOWN = _spec(
    255,
    "PAIRuntimeUnknownFailed",
    "UNKNOWN_FAILURE",
    "The task's command ended with a code that says it failed, and nothing says why.",
    _READ_LOG,
    retried=True,
)
_BELOW_ZERO = _spec(
    LOST_FROM_SIGHT,
    "UnknownFailed",
    "UNKNOWN_FAILURE",
    "The task ended in a way that nobody has a name for.",
    "Look at the job's events and its notes.",
    retried=True,
    stage="UNKNOWN",
    issuer="PAI_FC",
)
_LISTED = (
    _spec(
        0,
        "Succeeded",
        "USER_SUCCESS",
        "The task's command ended with 0.",
        stage="COMPLETING",
    ),
    _spec(
        STOPPED_BY_USER,
        "StopFrameworkRequested",
        "USER_STOP",
        "The job's owner, or an admin, stopped it.",
        stage="UNKNOWN",
        issuer="PAI_FC",
    ),
    _spec(
        STOPPED_WITH_JOB,
        "FrameworkAttemptCompletion",
        "USER_STOP",
        "The task was ended because this attempt of its job was over.",
        stage="UNKNOWN",
        issuer="PAI_FC",
    ),
    _user(
        OUT_OF_MEMORY,
        "UserContainerDockerOOMKilled",
        "The task used more memory than its role asks for, and was killed.",
        "Ask for more memory, or use less: a smaller batch, fewer loaders.",
    ),
    _UNKNOWN,
    _spec(
        NO_EXIT_CODE,
        "PAIRuntimeExitAbnormally",
        "PLATFORM_FAILURE",
        "The job failed, and no exit code of a task says how.",
        "Look at the job's events.",
        retried=True,
        stage="UNKNOWN",
        issuer="PAI_RUNTIME",
    ),
    _signal(2, "SIGINT", users=False),
    _signal(3, "SIGQUIT", users=False),
    _signal(4, "SIGILL", users=True),
    _unclear(_signal(6, "SIGABRT", users=True)),
    _signal(7, "SIGBUS", users=True),
    _signal(8, "SIGFPE", users=True),
    _signal(9, "SIGKILL", users=False),
    _unclear(_signal(11, "SIGSEGV", users=True)),
    _signal(13, "SIGPIPE", users=True),
    _signal(15, "SIGTERM", users=False),
    _user(198, "DiskCleanerKilled", "The task filled the disk that it runs on, and was killed."),
    _user(220, "InvalidCommand", "A command of the task is not there, or may not be run."),
    _user(221, "TensorflowOutOfMemory", "TensorFlow found no memory left."),
    _user(222, "MpiSegmentationFault", "A process of MPI touched memory that is not its own."),
    _platform(223, "CudaEccError", "A GPU's memory is faulty.", retried=True, stage="RUNNING"),
    _user(224, "CudaVersionMismatch", "CUDA's driver and library do not fit each other."),
    _user(225, "CudnnVersionMismatch", "cuDNN is another release than the framework needs."),
    _user(226, "CudaOutOfMemory", "A GPU's memory was full.", "Use a smaller batch or model."),
    _user(227, "EngineCoreDump", "An engine that the program uses crashed with a core dump."),
    _user(228, "InvalidParameter", "The program was given an argument that it does not know."),
    _user(229, "InvalidDataModel", "Data and model do not fit each other."),
    _user(230, "InvalidSavePath", "The folder to save in is not there, or not writable."),
    _user(231, "SyntaxError", "The program cannot be read: a mistake in its syntax."),
    _user(232, "ImportError", "A module that the program needs is not installed."),
    _user(233, "IndexError", "The program reached past the end of a list."),
    _user(234, "SegmentationFault", "The program touched memory that is not its own."),
    _user(235, "CoreDumped", "The program crashed and left a core dump."),
    _platform(
        249,
        "SshBarrierTimeout",
        "The job's tasks could not all be reached by ssh.",
        retried=False,
        stage="LAUNCHING",
    ),
    _platform(
        250,
        "BarrierTransientFailed",
        "The job's tasks did not find each other.",
        retried=True,
        stage="LAUNCHING",
    ),
    replace(
        _platform(
            NO_ROOM,
            "JobGangAllocationTimeout",
            "There was no room for all tasks of the job at once.",
            retried=True,
            stage="ALLOCATING",
        ),
        type="RESOURCE_ALLOCATION_TIMEOUT",
    ),
    _platform(
        252,
        "BarrierPermanentFailed",
        "The job's tasks could not find each other.",
        retried=False,
        stage="LAUNCHING",
    ),
    _platform(
        PORT_TAKEN, "PortConflict", "A port of the task was taken.", retried=True, stage="LAUNCHING"
    ),
    _user(254, "ContainerImageNotExists", "There is no image of that name."),
    _platform(
        EVICTED,
        "PodEvicted",
        "The machine ran short, and put the task out.",
        retried=True,
        stage="RUNNING",
    ),
    _platform(
        NODE_LOST,
        "PodNodeLost",
        "The machine that the task ran on was lost.",
        retried=True,
        stage="RUNNING",
    ),
    _platform(
        PREEMPTED,
        "PodPreemptedForCriticalPod",
        "The task had to make room for something more important.",
        retried=True,
        stage="RUNNING",
    ),
    _unclear(
        _platform(
            NOT_CREATED,
            "ContainerDockerCreationError",
            "The task's container could not be made.",
            retried=True,
            stage="LAUNCHING",
        )
    ),
    _unclear(
        _platform(
            NOT_STARTED,
            "ContainerDockerStartUnknownError",
            "The task's container was made, and could not be started.",
            retried=True,
            stage="LAUNCHING",
        )
    ),
    _platform(
        DELETED,
        "PodExternalDeleted",
        "Somebody, or the scheduler, removed the task.",
        retried=True,
        stage="RUNNING",
    ),
)
SPECS: Mapping[int, ExitSpec] = {spec.code: spec for spec in _LISTED}
_BY_REASON = {
    "OOMKilled": OUT_OF_MEMORY,
    "Evicted": EVICTED,
    "NodeLost": NODE_LOST,
    "Preempting": PREEMPTED,
    "Preempted": PREEMPTED,
    "PodDeleted": DELETED,
    "ContainerCannotRun": NOT_STARTED,
    "StartError": NOT_STARTED,
}


def spec_of(code: int | None, reason: str = "") -> ExitSpec | None:
    """`reason`: the engine's own word for how a replica ended, which knows more than its code. A
    code that is not in the table keeps its number."""
    if reason in _BY_REASON:
        return SPECS[_BY_REASON[reason]]
    if code is None:
        return None
    if code in SPECS:
        return SPECS[code]
    return replace(_UNKNOWN if code > 0 else _BELOW_ZERO, code=code)


def _refused(code: int, phrase: str) -> ExitSpec:
    spec = _user(
        code,
        phrase,
        "What the job asks for cannot be had here, or may not be asked for.",
        "Ask for less, or correct the config.",
    )
    return replace(spec, stage="SUBMITTING", issuer="PAI_LAUNCHER", causer="USER_SUBMISSION")


#: What the older API alone has a number for, or judges otherwise.
VERSION_ONES_OWN = {
    spec.code: spec
    for spec in (
        replace(_signal(11, "SIGSEGV", users=True), phrase="CONTAINER_KILLED_BY_SIGSEGV"),
        _platform(
            193,
            "CONTAINER_DOCKER_RUN_FAILED",
            "The task's container could not be started.",
            retried=True,
            stage="LAUNCHING",
        ),
        replace(SPECS[OUT_OF_MEMORY], code=196, phrase="CONTAINER_OOM_KILLED_BY_DOCKER"),
        _refused(-7200, "AM_RM_HEARTBEAT_YARN_EXCEPTION"),
        _refused(-7251, "AM_NON_TRANSIENT_EXCEPTION"),
        _refused(-7300, "APP_SUBMISSION_YARN_EXCEPTION"),
    )
}


def in_version_one(spec: ExitSpec | None) -> ExitSpec | None:
    """Under the numbers and phrases of the older API."""
    if spec is None:
        return None
    code = IN_VERSION_ONE.get(spec.code, spec.code)
    spec = VERSION_ONES_OWN.get(code, spec)
    return replace(
        spec,
        code=code,
        phrase=_PHRASES_OF_VERSION_ONE.get(spec.phrase, spec.phrase),
        behavior=_BEHAVIORS_OF_VERSION_ONE.get(spec.behavior, spec.behavior),
    )


def task_code_in_version_one(code: int | None) -> int | None:
    """A task that was stopped is told as one that ended with its job, whoever stopped that."""
    ended = STOPPED_WITH_JOB if code == STOPPED_BY_USER else code
    return None if ended is None else IN_VERSION_ONE.get(ended, ended)
