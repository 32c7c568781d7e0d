"""`regatta resume`: the other half of suspend."""

from __future__ import annotations

from regatta.cli.job_names import for_each, job_argument, one_or_more
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb


@verb("resume")
@job_argument(several=True)
@pass_settings
def command(settings: Settings, names: tuple[str, ...]) -> Exit:
    """Let suspended jobs run again; they queue like new ones."""
    one_or_more(names, False, "resume")
    engine = settings.engine()

    def resume(name: str) -> None:
        engine.resume(settings.namespace, name)
        print(f"job {name} resumed", flush=True)

    return for_each(list(names), resume, settings)
