"""Configs of OpenPAI's for tests that run them: hello, roles that look for each other, a secret."""

from __future__ import annotations

import json
from typing import Any

import yaml

#: What scripts of the wild are full of, and what of it must reach bash as it is.
ODD = """\
echo "$PAI_JOB_NAME by $PAI_USER_NAME" # a comment
cat <<'END'
$$ $(date) "quoted" 'too'
END
echo $(echo from a subshell) $(($$ > 0))
"""
ODD_SAYS = ["{user}~{job} by {user}", "$$ $(date) \"quoted\" 'too'", "from a subshell 1"]

_SERVE = """\
cat > server.py <<'END'
import os, socket
server = socket.create_server((os.environ["PAI_CURRENT_CONTAINER_IP"],
                               int(os.environ["PAI_CURRENT_CONTAINER_PORT"])))
while True:
    peer, _ = server.accept()
    peer.sendall(os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"].encode())
    peer.close()
END
python3 server.py
"""
_ASK = """\
python3 - <<'END'
import os, socket, time
for place in os.environ["PAI_TASK_ROLE_ps_server_HOST_LIST"].split(","):
    host, port = place.split(":")
    for _ in range(600):
        try:
            peer = socket.create_connection((host, int(port)), timeout=1)
            break
        except OSError:
            time.sleep(0.1)
    print("found", peer.recv(10).decode())
END
for role in ${PAI_TASK_ROLE_LIST//,/ }; do
  count=PAI_TASK_ROLE_TASK_COUNT_$role; echo $role has ${!count}
done
"""


def a_task_role(name: str, command: str, tasks: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "taskNumber": tasks, "memoryMB": 128, "command": command, **more}


def version_one(name: str, *roles: dict[str, Any], image: str = "none", **more: Any) -> str:
    return json.dumps({"jobName": name, "image": image, "taskRoles": list(roles), **more})


def hello(name: str = "Hello_World", command: str = ODD, **more: Any) -> str:
    return version_one(name, a_task_role("default", command), **more)


def two_roles(name: str = "two", tasks: int = 2, **more: Any) -> str:
    """Servers that never end, and as many workers that ask each of them for its number."""
    return version_one(
        name,
        a_task_role("ps_server", _SERVE, tasks),
        a_task_role("Worker", _ASK, tasks, minSucceededTaskCount=tasks),
        **more,
    )


def version_two(name: str, commands: list[str], *, image: str = "none", **more: Any) -> str:
    config = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": image}],
        "taskRoles": {
            "worker_0": {
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 0},
                "commands": commands,
            }
        },
        **more,
    }
    return yaml.safe_dump(config, sort_keys=False)
