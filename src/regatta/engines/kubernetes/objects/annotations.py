"""What the engine writes on, and reads from, objects of the cluster beside the brain's labels."""

from __future__ import annotations

from regatta.api.job import GROUP

#: On a pod: we asked it to end, so its exit code is nobody's fault. The value says when.
STOPPED = f"{GROUP}/stopped"
#: On a pod: the environment revision that it was told about. Writing it makes a kubelet look at
#: once, which otherwise looks at a missing ConfigMap again only after 7 to 15 seconds.
RELEASED = f"{GROUP}/environment"
#: On a job: the first port of its replicas under `intranet: Host`.
HOST_PORT = f"{GROUP}/host-port"
#: On a job: the key of the submission that made it. The same submission, sent again, finds it here.
SUBMISSION = f"{GROUP}/submission"
#: On a job: the keys of submissions whose jobs it replaced, newest first, so that a late repetition
#: of one of them is not taken for another job.
REPLACED = f"{GROUP}/replaced-submissions"
