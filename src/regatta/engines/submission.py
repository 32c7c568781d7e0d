"""From a submission to a job: read, changed and judged in one place, whichever engine takes it."""

from __future__ import annotations

from regatta.api.load import Loaded, load_job
from regatta.api.openpai.wanted import Setting
from regatta.engines.base import Shell, Submission


def read_submission(
    submission: Submission,
    shell: Shell | None = None,
    *,
    home_namespace: str | None = None,
    as_far_as_it_goes: bool = False,
) -> Loaded:
    """Raises InvalidJob with every problem; see `load_job`. `home_namespace` is for a file that
    names none."""
    return load_job(
        submission.text,
        source=submission.source,
        strict=submission.strict,
        name=submission.name,
        namespace=submission.namespace,
        home_namespace=home_namespace,
        env=submission.env,
        sets=submission.sets,
        commands=submission.commands,
        volumes=shell.volumes if shell is not None else {},
        as_far_as_it_goes=as_far_as_it_goes,
        setting=Setting(
            user=submission.user,
            default_fs_uri=submission.default_fs_uri,
            fs_uri_is_servers=submission.fs_uri_is_servers,
            unheard_fs_uri=submission.unheard_fs_uri,
            accounts=submission.accounts,
        ),
    )
