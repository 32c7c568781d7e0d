"""`regatta describe`: everything about one job, on one page."""

from __future__ import annotations

from regatta.cli.job_names import job_argument
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.description import describe_lines
from regatta.cli.show.output import dump, output_option, plain


@verb("describe")
@job_argument()
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, name: str, output: str | None) -> Exit:
    """Show a job's roles, replicas, events, why it waits and why it failed."""
    engine = settings.engine()
    job = engine.get(settings.namespace, name)
    pods = engine.pods(job.namespace, job.name)
    events = engine.events(job.namespace, job.name)
    if output:
        whole = {"job": plain(job), "pods": plain(pods), "events": plain(events)}
        print(dump(whole, output))
    else:
        print(settings.page(describe_lines(job, pods, events, settings.paint)))
    return Exit.OK
