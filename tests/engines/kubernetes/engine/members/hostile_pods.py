"""What a pod can ask for to get at its node: by a sentence, the change and the field that is named.

One table for our rules and for the API server's, so that they cannot drift apart.
"""

from __future__ import annotations

from typing import Any

from tests.api.builders import a_job

#: Sentence → (fields of the pod spec, fields of its container, the refused place in the pod spec).
BEYOND_BASELINE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "the node's network": ({"hostNetwork": True}, {}, "hostNetwork"),
    "the node's processes": ({"hostPID": True}, {}, "hostPID"),
    "the node's memory": ({"hostIPC": True}, {}, "hostIPC"),
    "a folder of the node": (
        {"volumes": [{"name": "ok", "emptyDir": {}}, {"name": "v", "hostPath": {"path": "/"}}]},
        {},
        "volumes[1].hostPath",
    ),
    "a port of the node": (
        {},
        {"ports": [{"containerPort": 80, "hostPort": 80}]},
        "containers[0].ports[0].hostPort",
    ),
    "all of the node": (
        {},
        {"securityContext": {"privileged": True}},
        "containers[0].securityContext.privileged",
    ),
    "one more capability": (
        {},
        {"securityContext": {"capabilities": {"add": ["KILL", "SYS_ADMIN"]}}},
        "containers[0].securityContext.capabilities.add[1]",
    ),
    "every system call": (
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        {},
        "securityContext.seccompProfile.type",
    ),
    "every system call in one container": (
        {},
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        "containers[0].securityContext.seccompProfile.type",
    ),
    "no AppArmor": (
        {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
        {},
        "securityContext.appArmorProfile.type",
    ),
    "another SELinux type": (
        {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
        {},
        "securityContext.seLinuxOptions.type",
    ),
    "another SELinux role": (
        {},
        {"securityContext": {"seLinuxOptions": {"role": "sysadm_r"}}},
        "containers[0].securityContext.seLinuxOptions.role",
    ),
    "a setting of the node's kernel": (
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
        {},
        "securityContext.sysctls[0].name",
    ),
    "a probe of another host": (
        {},
        {"livenessProbe": {"httpGet": {"port": 80, "host": "169.254.169.254"}}},
        "containers[0].livenessProbe.httpGet.host",
    ),
    "a hook that calls another host": (
        {},
        {"lifecycle": {"preStop": {"tcpSocket": {"port": 80, "host": "169.254.169.254"}}}},
        "containers[0].lifecycle.preStop.tcpSocket.host",
    ),
    "a privileged container before the others": (
        {"initContainers": [{"name": "i", "image": "i", "securityContext": {"privileged": True}}]},
        {},
        "initContainers[0].securityContext.privileged",
    ),
    "a process of a Windows node": (
        {"securityContext": {"windowsOptions": {"hostProcess": True}}, "hostNetwork": True},
        {},
        "securityContext.windowsOptions.hostProcess",
    ),
}

#: What is asked for and may be.
WITHIN_BASELINE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "root": ({"securityContext": {"runAsUser": 0}}, {}),
    "a capability of every container": (
        {},
        {"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}},
    ),
    "memory as a folder": (
        {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]},
        {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]},
    ),
    "a Secret and a claim of its own namespace": (
        {
            "volumes": [
                {"name": "s", "secret": {"secretName": "mine"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "mine"}},
            ]
        },
        {},
    ),
    "safe settings of its own kernel name spaces": (
        {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "4096 1 2"}]}},
        {},
    ),
    "the runtime's own profiles": (
        {
            "securityContext": {
                "seccompProfile": {"type": "RuntimeDefault"},
                "appArmorProfile": {"type": "RuntimeDefault"},
                "seLinuxOptions": {"type": "container_t", "level": "s0:c1,c2"},
            }
        },
        {},
    ),
    "a probe of itself": ({}, {"livenessProbe": {"httpGet": {"port": 80}}}),
}


def a_hostile_job(
    pod: dict[str, Any], container: dict[str, Any], name: str = "demo", workers: int = 1
) -> a_job:
    """Of one worker, whose template asks for that."""
    image = {"image": "registry.local/train:1"}
    return a_job(name).workers(workers).pod(**pod).with_container(**image, **container)
