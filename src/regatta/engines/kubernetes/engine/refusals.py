"""What a cluster's refusal means to the person who asked, and what they can do about it."""

from __future__ import annotations

import re

from regatta.api.errors import (
    ClusterRefused,
    ClusterUnreachable,
    InvalidJob,
    NoCluster,
    NotAllowed,
    NotInstalled,
    NotSignedIn,
    RegattaError,
)
from regatta.api.problems import Problem
from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.api.kube_errors import ApiError, ConfigError, KubeError, Unreachable
from regatta.engines.kubernetes.api.refusal_words import plain_words

INSTALL = "kubectl apply -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml"

_NO_RIGHT = re.compile(
    r'User "(?P<who>[^"]*)" cannot (?P<verb>\S+) resource "(?P<what>[^"]*)"'
    r'(?: in API group "[^"]*")?(?: in the namespace "(?P<where>[^"]*)"| at the cluster scope)?'
)


def explained(trouble: KubeError, access: ClusterAccess) -> RegattaError:
    match trouble:
        case ConfigError():
            return NoCluster(str(trouble))
        case Unreachable():
            return ClusterUnreachable(f"the cluster{_named(access)} does not answer: {trouble}")
        case ApiError():
            return _refused(trouble, access)
        case _:
            return ClusterRefused(str(trouble))


def _refused(error: ApiError, access: ClusterAccess) -> RegattaError:
    said = plain_words(error)
    if error.status == 401:
        return NotSignedIn(
            f"the cluster{_named(access)} does not know you (401): {said}. Sign in again with "
            "your provider's tool, or use another context of your kubeconfig with --context."
        )
    if error.forbidden:
        return _forbidden(said)
    if error.not_found and not error.details.kind:
        return NotInstalled(
            f"the cluster{_named(access)} has no PaddleJobs yet. `{INSTALL}` installs the "
            "resource and the operator."
        )
    if error.not_found and error.details.kind == "namespaces":
        name = error.details.name
        return ClusterRefused(
            f"the cluster has no namespace {name}. `kubectl create namespace {name}` makes it; "
            "-n names another."
        )
    if error.invalid and error.details.causes:
        causes = error.details.causes
        return InvalidJob([Problem(cause.field, cause.message) for cause in causes])
    if error.status >= 500:
        return ClusterUnreachable(
            f"the cluster{_named(access)} cannot answer just now ({error.status}): {said}"
        )
    return ClusterRefused(f"the cluster refused it: {said} ({error.status} {error.reason})")


def _forbidden(said: str) -> RegattaError:
    found = _NO_RIGHT.search(said)
    if found is None:  # a quota, or an admission rule
        return ClusterRefused(f"the cluster refused it: {said}")
    where = f"namespace {found['where']}" if found["where"] else "all namespaces"
    return NotAllowed(
        f"the cluster knows you as {found['who']}, who may not {found['verb']} {found['what']} in "
        f"{where}. Ask its administrator for the role `edit` there (`view` is enough for looking), "
        "or name a namespace of yours with -n."
    )


def _named(access: ClusterAccess) -> str:
    """As a person may know it, and by which of their files or accounts it is asked."""
    if access.context:
        return f" of context {access.context} ({access.source})"
    return f" at {access.server} (asked as {access.source})"
