"""How a job's end is told, in a run's last lines and on the page that describes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from regatta.api.job import HUNG, Failure, Job, JobSpec, JobStatus, Metadata, Mode, Phase
from regatta.api.load import load_job
from regatta.cli.show.ansi import Paint
from regatta.cli.show.description import describe_lines
from regatta.cli.show.overview import ending_lines, failure_lines, plan_lines
from regatta.engines.inventory import PodView
from tests.openpai_configs import hello, version_two

SUBMITTED = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = Paint(enabled=False)


def a_job(phase: Phase, **status: object) -> Job:
    """Submitted, placed nine seconds later, over after 55 more."""
    began = SUBMITTED + timedelta(seconds=9)
    fields: dict[str, object] = {
        "start_time": began,
        "completion_time": began + timedelta(seconds=55),
        **status,
    }
    return Job(
        metadata=Metadata(name="j", creation_timestamp=SUBMITTED),
        spec=JobSpec(mode=Mode.SINGLE),
        status=JobStatus(phase=phase, **fields),  # type: ignore[arg-type]
    )


def test_the_last_line_and_the_page_agree_how_long_it_took() -> None:
    job = a_job(Phase.COMPLETED)

    assert ending_lines(job, PLAIN) == ["job j Completed in 55s"]
    assert "Took:       55s" in describe_lines(job, [], [], PLAIN)


def test_a_job_that_never_had_its_place_took_no_time() -> None:
    job = a_job(Phase.ABORTED, start_time=None, message="stopped by its user")

    assert ending_lines(job, PLAIN) == ["job j Aborted: stopped by its user"]
    assert not [line for line in describe_lines(job, [], [], PLAIN) if line.startswith("Took")]


def test_tries_are_counted_from_one_as_people_count_them() -> None:
    job = a_job(Phase.FAILED, attempt=2)
    pod = PodView(
        name="j-worker-0", uid="p", role="worker", index=0, attempt=2, phase="Failed", current=True
    )
    page = describe_lines(job, [pod], [], PLAIN)
    head = next(n for n, line in enumerate(page) if "TRY" in line)
    assert dict(zip(page[head].split(), page[head + 1].split(), strict=True))["TRY"] == "3"


WHOLE_LOG = "  the whole log: `regatta logs j --role worker --index 0`"

FAILURES: dict[str, tuple[Failure, list[str]]] = {
    "an exit code and last lines": (
        Failure(pod="j-worker-0", role="worker", index=0, exit_code=3, message="one\ntwo\n"),
        ["  worker-0 failed first with exit code 3; its last lines:", "    one", "    two"],
    ),
    "an exit code and not a word": (
        Failure(pod="j-worker-0", role="worker", index=0, exit_code=3),
        [
            "  worker-0 failed first with exit code 3; its last lines:",
            "    (it said nothing)",
        ],
    ),
    "no exit code, and a sentence that the status has too": (
        Failure(pod="j-worker-0", role="worker", index=0, message="its supervisor was killed"),
        ["  worker-0 failed first"],
    ),
    "no exit code, and more than a sentence": (
        Failure(pod="j-worker-0", role="worker", index=0, message="one\ntwo"),
        ["  worker-0 failed first; its last lines:", "    one", "    two"],
    ),
    "hung, with what it said when it was ended": (
        Failure(pod="j-worker-0", role="worker", index=0, reason=HUNG, message="no replica..."),
        ["  the last lines of worker-0:", "    epoch 1"],
    ),
    "hung, and not ended yet": (
        Failure(pod="j-worker-1", role="worker", index=0, reason=HUNG, message="no replica..."),
        [],
    ),
}


@pytest.mark.parametrize(("failure", "lines"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_told_by(failure: Failure, lines: list[str]) -> None:
    common = {"role": "worker", "attempt": 0, "current": True}
    ended = PodView(
        name="j-worker-0",
        uid="1",
        index=0,
        phase="Failed",
        message="epoch 1\n",
        finished_at=SUBMITTED,
        **common,  # type: ignore[arg-type]
    )
    ending = PodView(name="j-worker-1", uid="2", index=1, phase="Running", **common)  # type: ignore[arg-type]
    job = a_job(Phase.FAILED, failure=failure)

    assert failure_lines(job, [ended, ending], PLAIN) == [*lines, WHOLE_LOG]


def test_a_job_that_runs_and_waits_to_grow_says_why_it_waits() -> None:
    job = a_job(Phase.RUNNING, completion_time=None, message="to be scaled: 2nd in the queue")
    page = describe_lines(job, [], [], PLAIN)
    assert page[page.index("Why it waits:") + 1] == "  to be scaled: 2nd in the queue"


OPENPAI = {
    "v1": (hello("h", "echo $HOME $$ # so"), "echo $HOME $$ # so"),
    "v2": (version_two("h", ["echo $HOME", "true"]), "echo $HOME true"),
    "v2 with a secret": (
        version_two("h", ["echo <% $secrets.a %>"], secrets={"a": "b"}),
        "echo <% $secrets.a %>",
    ),
}


@pytest.mark.parametrize(("config", "shown"), OPENPAI.values(), ids=OPENPAI)
def test_a_command_of_openpais_is_shown_as_its_author_wrote_it(config: str, shown: str) -> None:
    lines = plan_lines(load_job(config).job, PLAIN)

    assert any(line.endswith(f"  {shown}") for line in lines), lines
