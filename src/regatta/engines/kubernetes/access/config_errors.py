"""The root of what can go wrong with a cluster, and the part of it that comes before any request.

`api.kube_errors` has the rest of the family, and names these too: who talks to a cluster looks
there.
"""

from __future__ import annotations


class KubeError(Exception):
    """Anything that is raised on purpose between us and a cluster."""


class ConfigError(KubeError):
    """How to reach the cluster, or as whom, is not settled: a person has to change something."""
