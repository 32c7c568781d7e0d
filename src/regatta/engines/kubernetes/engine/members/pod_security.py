"""What a pod template asks for beyond Kubernetes' Pod Security level `baseline`, field by field.

The level's own list, in its order: https://kubernetes.io/docs/concepts/security/pod-security-standards.
The API server has the last word; a test asks it about every case here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from regatta.api.checks.suggestions import listed, shown
from regatta.api.problems import Problem
from regatta.api.source.paths import join

Map = dict[str, Any]

CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
SYSCTLS = (
    "kernel.shm_rmid_forced",
    *(f"net.ipv4.{name}" for name in ("ip_local_port_range", "ip_unprivileged_port_start")),
    *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
    *(f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl")),
    *(f"net.ipv4.tcp_{name}" for name in ("keepalive_probes", "rmem", "wmem")),
)
PROFILES = ("RuntimeDefault", "Localhost")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_NOT_HERE = "a team's jobs run under Pod Security baseline"


def beyond_baseline(template: Map, path: str) -> Iterator[Problem]:
    """Tolerates a template of any shape: what is wrong with that is told elsewhere."""
    pod, place = _map(template.get("spec")), join(path, "spec")
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field) is True:
            yield _refused(place, field, True, "leave it out: a pod shares nothing with its node")
    for number, volume in enumerate(_maps(pod.get("volumes"))):
        if volume.get("hostPath") is not None:
            yield Problem(
                f"{join(place, 'volumes')}[{number}].hostPath",
                f"{_NOT_HERE}, without the folders of a node; use a PersistentVolumeClaim, or an "
                "emptyDir for what may go with the pod",
            )
    for field, value in _map(_map(template.get("metadata")).get("annotations")).items():
        allowed = value == "runtime/default" or str(value).startswith("localhost/")
        if field.startswith(_APPARMOR) and not allowed:
            at = join(join(path, "metadata"), "annotations")
            yield _refused(at, field, value, "leave it out")
    context, at = _map(pod.get("securityContext")), join(place, "securityContext")
    yield from _security(context, at)
    for number, sysctl in enumerate(_maps(context.get("sysctls"))):
        if (name := sysctl.get("name")) not in SYSCTLS:
            place_of = f"{join(at, 'sysctls')}[{number}]"
            yield _refused(place_of, "name", name, "only those that a pod has to itself may be set")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for number, container in enumerate(_maps(pod.get(kind))):
            yield from _container(container, f"{join(place, kind)}[{number}]")


def _container(container: Map, path: str) -> Iterator[Problem]:
    context, at = _map(container.get("securityContext")), join(path, "securityContext")
    if context.get("privileged") is True:
        yield _refused(at, "privileged", True, "leave it out: it would have the whole node")
    added = _map(context.get("capabilities")).get("add")
    for number, name in enumerate(added if isinstance(added, list) else ()):
        if name not in CAPABILITIES:
            yield Problem(
                f"{at}.capabilities.add[{number}]",
                f"found {shown(name)}: {_NOT_HERE}, which has {listed(CAPABILITIES)}",
            )
    if context.get("procMount") not in (None, "Default"):
        yield _refused(at, "procMount", context["procMount"], "leave it out")
    yield from _security(context, at)
    for number, port in enumerate(_maps(container.get("ports"))):
        if port.get("hostPort"):
            yield _refused(
                f"{join(path, 'ports')}[{number}]",
                "hostPort",
                port["hostPort"],
                "leave it out: replicas reach each other at their own addresses",
            )
    lifecycle = _map(container.get("lifecycle"))
    handlers = [(container.get(probe), join(path, probe)) for probe in _PROBES]
    handlers += [(lifecycle.get(hook), f"{join(path, 'lifecycle')}.{hook}") for hook in _HOOKS]
    for handler, place in handlers:
        for action in ("httpGet", "tcpSocket"):
            if host := _map(_map(handler).get(action)).get("host"):
                yield _refused(join(place, action), "host", host, "leave it out: it is the pod's")


def _security(context: Map, path: str) -> Iterator[Problem]:
    """What a pod's securityContext has in common with a container's."""
    if _map(context.get("windowsOptions")).get("hostProcess") is True:
        yield _refused(join(path, "windowsOptions"), "hostProcess", True, "leave it out")
    for field in ("seccompProfile", "appArmorProfile"):
        kind = _map(context.get(field)).get("type")
        if kind is not None and kind not in PROFILES:
            yield _refused(join(path, field), "type", kind, f"write {listed(PROFILES)}")
    options, at = _map(context.get("seLinuxOptions")), join(path, "seLinuxOptions")
    if options.get("type", "") not in SELINUX_TYPES:
        yield _refused(at, "type", options["type"], f"write {listed(SELINUX_TYPES[1:])}")
    for field in ("user", "role"):
        if options.get(field):
            yield _refused(at, field, options[field], "leave it out")


def _refused(path: str, field: str, found: object, right: str) -> Problem:
    return Problem(join(path, field), f"found {shown(found)}: {_NOT_HERE}; {right}")


def _map(value: object) -> Map:
    return value if isinstance(value, dict) else {}


def _maps(value: object) -> Iterable[Map]:
    return [_map(item) for item in value] if isinstance(value, list) else []
