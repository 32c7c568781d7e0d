"""What is stored of a submission's shell outlives releases."""

from __future__ import annotations

import msgspec

from regatta.engines.base import RunAs, Shell
from regatta.engines.local.store.queries import decode_context
from regatta.engines.local.store.records import Context

ANN = RunAs(uid=200_000, gid=200_000, name="ann", home="/home/ann", groups=(5,))


def test_a_context_of_an_older_release_is_of_nobody_else() -> None:
    old = b'{"directory":"/work","shell":{"PATH":"/bin"},"python":"x","runtime":"podman"}'
    context = decode_context(old)
    assert (context.directory, context.runtime) == ("/work", "podman")
    assert context.run_as is None
    assert context.folders is None
    assert (context.runs, context.images, context.given) == ("", None, {})


def test_as_whom_a_job_runs_is_kept_with_it() -> None:
    shell = Shell(
        run_as=ANN,
        folders=("/data",),
        runs="/w/runs",
        library="/w/lib",
        images={},
        given={"A": "b"},
    )
    kept = decode_context(msgspec.json.encode(Context.of(shell)))
    assert kept == Context.of(shell)
    assert kept.run_as == ANN


def test_an_empty_list_of_folders_is_not_every_folder() -> None:
    kept = decode_context(msgspec.json.encode(Context.of(Shell(folders=()))))
    assert kept.folders == ()
