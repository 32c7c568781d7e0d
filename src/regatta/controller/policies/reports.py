"""Values in reports of progress that are no numbers, such as a loss of nan: each is told once."""

from __future__ import annotations

from msgspec.structs import replace

from regatta.api.job import JobStatus, Progress
from regatta.controller.plan import Event, Plan

#: A program that makes up names is not told of for ever.
MOST_NAMES = 32


def with_all_named(seen: Progress, known: Progress | None) -> Progress:
    """The newer report, with what was named before: that is how it is known to be told."""
    before = known.not_numbers if known is not None else {}
    named = [*before.items(), *(new for new in seen.not_numbers.items() if new[0] not in before)]
    return replace(seen, not_numbers=dict(named[:MOST_NAMES]))


def tell_of_no_numbers(plan: Plan, stored: JobStatus) -> Plan:
    assert plan.status is not None  # whatever is done, something is said
    before, now = stored.progress, plan.status.progress
    told = before.not_numbers if before is not None else {}
    named = now.not_numbers if now is not None else {}
    news = [f"{name} was {value}" for name, value in named.items() if name not in told]
    if not news:
        return plan
    listed = " and ".join(filter(None, (", ".join(news[:-1]), news[-1])))
    one = len(news) == 1
    message = (
        f"in a report of progress, {listed}, which {'is no number' if one else 'are no numbers'}; "
        f"{'it is' if one else 'they are'} left out, and the rest of the report counts"
    )
    event = Event(type="Warning", reason="NotANumber", message=message)
    return replace(plan, events=(*plan.events, event))
