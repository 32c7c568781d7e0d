"""`regatta describe`: everything about one job, on one page."""

from __future__ import annotations

from regatta.cli.job_names import job_argument, meant, uid_option
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.description import describe_lines
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.show.run_rows import record_lines


@verb("describe")
@job_argument(required=False)
@uid_option()
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, name: str | None, uid: str, output: str | None) -> Exit:
    """Show a job's roles, replicas, events, why it waits and why it failed.

    Of a run of which only the record is left, that record.
    """
    engine = settings.engine()
    run = meant(settings, name, uid, "describe")
    if run is not None and not run.whole:
        record = dump({"run": plain(run)}, output) if output else settings.page(record_lines(run))
        print(record)
        return Exit.OK
    name, uid = (run.name, run.uid) if run else (str(name), "")
    job = engine.get(settings.namespace, name, uid)
    pods = engine.pods(job.namespace, job.name, uid)
    events = engine.events(job.namespace, job.name, uid=uid)
    if output:
        whole = {"job": plain(job), "pods": plain(pods), "events": plain(events)}
        print(dump(whole, output))
    else:
        print(settings.page(describe_lines(job, pods, events, settings.paint, uid)))
    return Exit.OK
