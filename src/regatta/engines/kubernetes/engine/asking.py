"""Every call and every stream of the engine: names are checked before, and what the cluster refuses
is told as the errors that doors know."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from regatta.api.checks.names import about_namespace
from regatta.api.errors import BadRequest
from regatta.controller.changes import no_such_job
from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.api.kube_errors import KubeError
from regatta.engines.kubernetes.engine.refusals import explained


class Asked(Protocol):
    """What a refusal names: where the cluster is, and as whom it was asked."""

    access: ClusterAccess


P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=Asked)


def _check_names(namespace: object = None, name: object = None, *_: object, **__: object) -> None:
    """Of a call that says where: names become parts of a path, and `..` would lead elsewhere."""
    if isinstance(namespace, str) and namespace and (wrong := about_namespace(namespace)):
        raise BadRequest(f"namespace: {wrong}")
    if isinstance(name, str) and name in (".", ".."):
        raise no_such_job(str(namespace), name)


def asked(
    method: Callable[Concatenate[E, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[E, P], Coroutine[Any, Any, T]]:
    """The cluster's refusals come as the errors that doors know."""

    @functools.wraps(method)
    async def call(self: E, /, *args: P.args, **kwargs: P.kwargs) -> T:
        _check_names(*args, **kwargs)
        try:
            return await method(self, *args, **kwargs)
        except KubeError as trouble:
            raise explained(trouble, self.access) from trouble

    return call


def streamed(
    method: Callable[Concatenate[E, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[E, P], AsyncGenerator[T, None]]:
    @functools.wraps(method)
    async def stream(self: E, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        _check_names(*args, **kwargs)
        try:
            async with aclosing(method(self, *args, **kwargs)) as items:
                async for item in items:
                    yield item
        except KubeError as trouble:
            raise explained(trouble, self.access) from trouble

    return stream
