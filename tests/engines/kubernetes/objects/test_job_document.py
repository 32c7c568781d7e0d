from __future__ import annotations

import msgspec

from regatta.engines.kubernetes.api.answers import decoder_of
from regatta.engines.kubernetes.objects.job_document import JobDocument


def test_a_job_that_makes_no_sense_is_kept_as_it_stands() -> None:
    text = b'{"metadata": {"name": "odd", "uid": "u"}, "spec": {"worker": "many"}}'
    job = decoder_of(JobDocument)(msgspec.Raw(text))
    assert (job.metadata.name, job.spec, job.status) == ("odd", b'{"worker": "many"}', b"{}")
