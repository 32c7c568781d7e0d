"""The caches of an operator: what a start waits for."""

from __future__ import annotations

from unittest.mock import create_autospec

import pytest

from regatta.engines.kubernetes.api.client import KubeClient
from regatta.engines.kubernetes.api.resources import NATIVE_POD_GROUPS
from regatta.engines.kubernetes.cache.informer import InformerSettings
from regatta.engines.kubernetes.operator import caches
from tests.engines.kubernetes.loops import in_a_loop


@in_a_loop
async def test_pod_groups_that_may_not_be_listed_do_not_keep_other_jobs_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caches, "GROUPS_SECONDS", 0.05)
    found = caches.Caches(create_autospec(KubeClient), settings=InformerSettings())
    found._discovered.set()
    for informer in found.informers:
        informer.synced.set()
    found.groups["native"] = found._group_informer(NATIVE_POD_GROUPS)
    await found.until_synced()
    assert found.synced
    assert not found.groups["native"].synced.is_set()
