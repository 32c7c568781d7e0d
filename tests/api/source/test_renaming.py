"""What stands beside a job goes where the job goes, as the documents that an API server takes."""

from __future__ import annotations

from regatta.api.load import load_job

FILE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: wide}
spec: {minMember: 2}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec: {hostPath: {path: /data}, claimRef: {name: data}, capacity: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: elsewhere}
spec: {resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: left-aside}
---
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {name: wide}
spec:
  cleanPolicy: Never
  worker:
    replicas: 2
    template: {spec: {containers: [{name: main, image: x, command: [a], env: null}]}}
"""


def test_companions_follow_a_job_that_is_renamed_and_moved() -> None:
    loaded = load_job(FILE, name="deep", namespace="team")

    group, volume, claim = loaded.beside
    assert group["metadata"] == {"name": "deep", "namespace": "team"}
    assert volume["spec"]["claimRef"] == {"name": "data", "namespace": "team"}
    assert claim["metadata"]["namespace"] == "elsewhere"  # it said so itself
    assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}


def test_the_document_is_what_was_written_and_not_what_it_means() -> None:
    document = load_job(FILE, sets=["spec.worker.replicas=3"]).document

    assert document["spec"]["cleanPolicy"] == "Never"
    assert document["spec"]["worker"]["replicas"] == 3
    assert "mode" not in document["spec"]
    assert "namespace" not in document["metadata"]
    assert "env" not in document["spec"]["worker"]["template"]["spec"]["containers"][0]
