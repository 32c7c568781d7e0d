"""`regatta suspend`: stop replicas and keep the job."""

from __future__ import annotations

from regatta.cli.job_names import for_each, job_argument, one_or_more
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb


@verb("suspend")
@job_argument(several=True)
@pass_settings
def command(settings: Settings, names: tuple[str, ...]) -> Exit:
    """Stop the replicas of jobs and give their resources back, until they are resumed."""
    one_or_more(names, False, "suspend")
    engine = settings.engine()

    def suspend(name: str) -> None:
        engine.suspend(settings.namespace, name)
        print(f"job {name} suspended", flush=True)

    return for_each(list(names), suspend, settings)
