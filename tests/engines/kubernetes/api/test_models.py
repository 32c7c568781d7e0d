"""Slim objects: what is read is there, and nothing else costs memory."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import msgspec

from regatta.engines.kubernetes.api.answers import decoder_of
from regatta.engines.kubernetes.api.models import EndpointSlice, Pod


def a_pod_as_the_server_sends_it(number: int) -> dict[str, Any]:
    """With everything that makes such objects large, to about 6 KB."""
    manager = {"manager": "kubelet", "fieldsV1": {f"f:field-{i}": {} for i in range(120)}}
    variables = [{"name": f"PADDLE_{i}", "value": f"value-{i}"} for i in range(40)]
    state = {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2030-01-01T00:00:00Z"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"mnist-worker-{number}",
            "namespace": "research",
            "uid": f"0b6b2c7e-0000-4000-8000-{number:012}",
            "resourceVersion": str(100000 + number),
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "paddlejob",
                "app.kubernetes.io/instance": "mnist",
                "app.kubernetes.io/managed-by": "regatta",
                "batch.paddlepaddle.org/job-name": "mnist",
                "batch.paddlepaddle.org/role": "worker",
                "batch.paddlepaddle.org/replica-index": str(number),
                "batch.paddlepaddle.org/attempt": "0",
                "batch.paddlepaddle.org/environment-revision": "1",
                "paddle-res-name": f"mnist-worker-{number}",
                "paddle-res-type": "worker",
            },
            "annotations": {"paddle-resource": "worker"},
            "ownerReferences": [
                {
                    "apiVersion": "batch.paddlepaddle.org/v1",
                    "kind": "PaddleJob",
                    "name": "mnist",
                    "uid": "0b6b2c7e-1111-4000-8000-000000000000",
                    "controller": True,
                }
            ],
            "managedFields": [manager],
        },
        "spec": {
            "nodeName": f"node-{number % 50}",
            "restartPolicy": "Never",
            "containers": [{"name": "train", "image": "registry.local/x", "env": variables}],
        },
        "status": {
            "phase": "Running",
            "podIP": "198.18.0.7",
            "podIPs": [{"ip": "198.18.0.7"}],
            "hostIP": "198.18.255.1",
            "startTime": "2030-01-01T00:00:00Z",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": "train", "ready": True, "restartCount": 1, "state": {}, "lastState": state}
            ],
        },
    }


def test_a_pod_takes_less_than_4_kb_and_keeps_what_matters() -> None:
    texts = [msgspec.json.encode(a_pod_as_the_server_sends_it(n)) for n in range(1000)]
    assert len(texts[0]) > 4500
    decode = decoder_of(Pod)
    decode(texts[0])
    gc.collect()
    tracemalloc.start()
    pods = [decode(text) for text in texts]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / len(pods) < 4096, f"{used / len(pods):.0f} bytes a pod"

    pod = pods[7]
    assert pod.metadata.key == "research/mnist-worker-7"
    assert pod.metadata.controller_uid == "0b6b2c7e-1111-4000-8000-000000000000"
    assert pod.status.pod_ip == "198.18.0.7"
    ended = pod.status.container_statuses[0].last_state.terminated
    assert ended is not None
    assert ended.exit_code == 3


def test_slim_objects_are_no_work_for_the_garbage_collector() -> None:
    pod = decoder_of(Pod)(msgspec.json.encode(a_pod_as_the_server_sends_it(1)))
    assert not gc.is_tracked(pod)
    assert not gc.is_tracked(pod.metadata)
    assert not gc.is_tracked(pod.metadata.labels)


def test_a_service_without_pods_has_null_endpoints() -> None:
    text = b'{"metadata": {"name": "x", "labels": {"kubernetes.io/service-name": "w-0"}}, '
    slice_ = decoder_of(EndpointSlice)(text + b'"addressType": "IPv4", "endpoints": null}')
    assert (slice_.service, slice_.endpoints) == ("w-0", None)
