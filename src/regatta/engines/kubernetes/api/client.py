"""The verbs of the Kubernetes API, for any resource.

Answers are bytes until somebody decodes them: most of what a write answers is never read.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from regatta.engines.kubernetes.access.config import ClusterAccess
from regatta.engines.kubernetes.api.answers import Answer, Listing, Page, decoder_of
from regatta.engines.kubernetes.api.exchange import CallObserver, ClientSettings, Exchange
from regatta.engines.kubernetes.api.kube_errors import ApiError, Unreachable
from regatta.engines.kubernetes.api.resources import PODS, Resource
from regatta.engines.kubernetes.api.transport import Request, Transport

__all__ = ["Answer", "ClientSettings", "KubeClient", "Listing", "PatchKind"]

T = TypeVar("T")

Query = Mapping[str, str | int | bool | None]

FIELD_MANAGER = "regatta"
DEFAULTS = ClientSettings()


class PatchKind(StrEnum):
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    #: Server-side apply. JSON is YAML, and the API server takes it as such everywhere.
    APPLY = "application/apply-patch+yaml"


class _ApiResource(msgspec.Struct, frozen=True):
    name: str


class _ApiResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_ApiResource, ...] = ()


class KubeClient:
    def __init__(
        self,
        access: ClusterAccess,
        settings: ClientSettings = DEFAULTS,
        *,
        observer: CallObserver | None = None,
    ) -> None:
        self.access = access
        self._page_size = settings.page_size
        self._transport = Transport(access, settings.transport)
        self._exchange = Exchange(self._transport, settings, observer)

    async def __aenter__(self) -> KubeClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    # Reading

    async def get(
        self, resource: Resource, name: str, *, namespace: str = "", subresource: str = ""
    ) -> Answer:
        path = resource.path(namespace, name, subresource)
        return await self._read(Request("get", "GET", path, resource.plural))

    async def list(
        self,
        resource: Resource,
        kind: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Listing[T]:
        """Everything, page by page, as of one moment."""
        return await self.collect(
            resource,
            decoder_of(kind),
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )

    async def collect(
        self,
        resource: Resource,
        decode: Callable[[msgspec.Raw], T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Listing[T]:
        """`list` with a decoder. A page's text is let go once its objects are decoded.

        A list that takes longer than the server remembers (410 on a later page) is begun again,
        the second time as one single page.
        """
        query: Query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        path = resource.path(namespace)
        for size in (self._page_size, self._page_size, 0):
            try:
                return await self._collect(resource, path, decode, query, size)
            except ApiError as refused:
                if not refused.gone or not size:
                    raise
        raise AssertionError("the last round returns or raises")

    async def _collect(
        self,
        resource: Resource,
        path: str,
        decode: Callable[[msgspec.Raw], T],
        query: Query,
        size: int,
    ) -> Listing[T]:
        async def page_after(token: str) -> Page:
            target = _target(path, {**query, "limit": size or None, "continue": token})
            answer = await self._read(Request("list", "GET", target, resource.plural))
            try:
                return answer.into(Page)
            except msgspec.DecodeError as foreign:
                # Gateways greet with a page of their own, and say 200.
                raise Unreachable(
                    f"GET {path}: what answers there is no API server ({foreign})"
                ) from foreign

        items: builtins.list[T] = []
        page = await page_after("")
        while token := page.metadata.continues:
            # The server makes the next page while we decode this one: each takes milliseconds.
            coming = asyncio.create_task(page_after(token))
            try:
                await asyncio.sleep(0)
                items += map(decode, page.items or ())
                page = await coming
            finally:
                coming.cancel()
        items += map(decode, page.items or ())
        return Listing(items, page.metadata.resource_version)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
        silence: float | None = 75.0,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Lines, one JSON watch event each, bookmarks among them, until the server ends the watch.

        `silence` is the longest pause that is believed: bookmarks come about once a minute, so a
        connection without any is dead even if nobody told us (`Stalled`).
        """
        query: Query = {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": timeout_seconds,
        }
        call = Request("watch", "GET", _target(resource.path(namespace), query), resource.plural)
        async with (
            self._exchange.stream(call, silence) as parts,
            aclosing(_lines(parts)) as lines,
        ):
            yield lines

    @asynccontextmanager
    async def logs(
        self,
        name: str,
        *,
        namespace: str,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail_lines: int | None = None,
        since_time: str = "",
        limit_bytes: int | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A container's output in parts as they come; lines may span parts."""
        query: Query = {
            "container": container,
            "follow": follow or None,
            "previous": previous or None,
            "timestamps": timestamps or None,
            "tailLines": tail_lines,
            "sinceTime": since_time,
            "limitBytes": limit_bytes,
        }
        call = Request("get", "GET", _target(PODS.path(namespace, name, "log"), query), "pods/log")
        async with self._exchange.stream(call, None) as parts:
            yield parts

    async def has_resource(self, resource: Resource) -> bool:
        """Whether this cluster serves it: a CRD may be missing, an alpha API switched off."""
        try:
            answer = await self._read(Request("get", "GET", resource.root, "apiresources"))
        except ApiError as refused:
            if refused.not_found:
                return False
            raise
        served = answer.into(_ApiResourceList).resources
        return any(known.name == resource.plural for known in served)

    async def read_path(self, path: str) -> Answer:
        """What is not a resource: `/version`, `/readyz`."""
        return await self._read(Request("get", "GET", path, path))

    # Writing

    async def create(
        self,
        resource: Resource,
        body: object,
        *,
        namespace: str = "",
        strict: bool = False,
        dry_run: bool = False,
        subresource: str = "",
        name: str = "",
    ) -> Answer:
        """POST. `strict`: a field that the server does not know is an error that names it."""
        target = _target(
            resource.path(namespace, name, subresource), _writing(strict=strict, dry_run=dry_run)
        )
        return await self._write("create", "POST", target, resource.plural, body)

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: object,
        *,
        namespace: str = "",
        subresource: str = "",
        strict: bool = False,
        dry_run: bool = False,
    ) -> Answer:
        """PUT. Conditional where the body carries `metadata.resourceVersion`."""
        target = _target(
            resource.path(namespace, name, subresource), _writing(strict=strict, dry_run=dry_run)
        )
        return await self._write("update", "PUT", target, resource.plural, body)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: object,
        *,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        uid: str = "",
        resource_version: str = "",
        strict: bool = False,
        dry_run: bool = False,
        force: bool = False,
    ) -> Answer:
        """PATCH. With `uid` or `resource_version`, only that object or that version of it: any
        other is left alone and answered with a conflict."""
        query = _writing(strict=strict, dry_run=dry_run)
        if kind is PatchKind.APPLY:
            query["force"] = force or None
        elif force:
            raise ValueError("only an apply can be forced")
        target = _target(resource.path(namespace, name, subresource), query)
        guarded = _guarded(body, kind, uid, resource_version)
        try:
            return await self._write("patch", "PATCH", target, resource.plural, guarded, kind)
        except ApiError as refused:
            if guarded is not body and _guard_held_it(refused, kind):
                # The server words it as a mistake in the patch; for us it is one thing.
                raise ApiError(409, "Conflict", refused.message, refused.details) from refused
            raise

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """DELETE. With `uid`, only that object, never a successor under the same name.

        `propagation` is Background, Foreground or Orphan; `grace_seconds=0` does not wait for a
        kubelet.
        """
        preconditions = {
            key: value
            for key, value in (("uid", uid), ("resourceVersion", resource_version))
            if value
        }
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        if dry_run:
            options["dryRun"] = ["All"]
        target = resource.path(namespace, name)
        return await self._write("delete", "DELETE", target, resource.plural, options)

    # How

    async def _read(self, call: Request) -> Answer:
        return await self._exchange.send(call, again_when_broken=True)

    async def _write(
        self,
        verb: str,
        method: str,
        target: str,
        resource: str,
        body: object,
        kind: str = "application/json",
    ) -> Answer:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await self._exchange.send(
            Request(verb, method, target, resource, content, kind), again_when_broken=False
        )


def _writing(*, strict: bool, dry_run: bool) -> dict[str, str | int | bool | None]:
    return {
        "fieldManager": FIELD_MANAGER,
        "fieldValidation": "Strict" if strict else None,
        "dryRun": "All" if dry_run else None,
    }


def _guarded(body: object, kind: PatchKind, uid: str, resource_version: str) -> object:
    """The API server compares a patch's own uid and resourceVersion with the object's."""
    wanted = {"uid": uid, "resourceVersion": resource_version}
    wanted = {key: value for key, value in wanted.items() if value}
    if not wanted:
        return body
    if kind is PatchKind.JSON:
        if not isinstance(body, builtins.list):
            raise TypeError("a JSON patch is a list of operations")
        tests = [
            {"op": "test", "path": f"/metadata/{key}", "value": value}
            for key, value in wanted.items()
        ]
        return [*tests, *body]
    if not isinstance(body, dict):
        raise TypeError("a guarded patch must be given as a dict, so that its guard can be added")
    return {**body, "metadata": {**body.get("metadata", {}), **wanted}}


def _guard_held_it(refused: ApiError, kind: PatchKind) -> bool:
    """A uid that is not the object's reads as an attempt to change it, a failed test of a JSON
    patch as a patch that cannot be applied."""
    if refused.status != 422:
        return False
    fields = [cause.field for cause in refused.details.causes]
    return "metadata.uid" in fields or (kind is PatchKind.JSON and "test" in refused.message)


def _target(path: str, query: Query) -> str:
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in query.items()
        if value is not None and value != ""
    }
    return f"{path}?{urlencode(given)}" if given else path


async def _lines(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    begun = b""
    async for part in parts:
        if begun:
            part = begun + part
        *lines, begun = part.split(b"\n")
        for line in lines:
            if line:
                yield line
