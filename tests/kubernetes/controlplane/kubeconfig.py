"""Who may talk to a test cluster: users with tokens, and the kubeconfig that carries each.

JSON is YAML, so these files need no YAML writer.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path

MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """A user known to the API server by a token. Rights come from RBAC, by name or group."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(16))


def write_token_file(path: Path, users: list[User]) -> None:
    """The API server's --token-auth-file. It is read once, at the API server's start."""
    lines = (
        f'{user.token},{user.name},{user.name}-uid,"{",".join(user.groups)}"\n' for user in users
    )
    path.write_text("".join(lines))
    path.chmod(0o600)


def write_kubeconfig(
    path: Path, *, server: str, ca_file: Path, user: str, token: str, namespace: str = "default"
) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority": str(ca_file)}}
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": user, "namespace": namespace}}
        ],
        "current-context": "test",
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    path.chmod(0o600)
    return path
