"""`regatta top`: what the machine or the cluster has, what jobs hold, what they really use."""

from __future__ import annotations

import sys
import time

import click

from regatta.api.job import CleanPodPolicy, Job, Phase
from regatta.cli.outcomes import Exit
from regatta.cli.settings import Settings, pass_settings, verb
from regatta.cli.show.output import dump, output_option, plain
from regatta.cli.show.table import Cell, table
from regatta.cli.show.times import size
from regatta.client.client import Client
from regatta.engines.base import MachineView, PodView

REFRESH_SECONDS = 2.0


@verb("top")
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of every namespace.")
@click.option("-w", "--watch", is_flag=True, help="Refresh every two seconds.")
@output_option("json", "yaml")
@pass_settings
def command(settings: Settings, all_namespaces: bool, watch: bool, output: str | None) -> Exit:
    """Show what the machine has, what jobs hold of it, and what their replicas use now.

    On a cluster: what its nodes have, what the pods of jobs ask of them, and, where a
    metrics-server measures it, what they use.
    """
    show = _show_cluster if settings.on_cluster else _show_machine
    while True:
        show(settings, None if all_namespaces else settings.namespace, watch, output)
        if not watch:
            return Exit.OK
        time.sleep(REFRESH_SECONDS)


def _show_cluster(
    settings: Settings, namespace: str | None, watch: bool, output: str | None
) -> None:
    from regatta.cli.show.cluster_use import cluster_lines

    use = settings.cluster().usage(namespace)
    if output:
        print(dump(plain(use), output), flush=True)
        return
    _print(cluster_lines(use, settings, namespaces=namespace is None), settings, watch)
    for note in use.notes:
        click.echo(f"note: {note}", err=True)


def _show_machine(
    settings: Settings, namespace: str | None, watch: bool, output: str | None
) -> None:
    machine, usage = _look(settings.connect_server(), namespace)
    if output:
        replicas = [
            {"job": job.name, "namespace": job.namespace, "pods": plain(pods)}
            for job, pods in usage
        ]
        print(dump({"machine": plain(machine), "jobs": replicas}, output), flush=True)
        return
    lines = [*machine_lines(machine, settings), "", *usage_lines(usage, settings)]
    _print(lines, settings, watch)


def _print(lines: list[str], settings: Settings, watch: bool) -> None:
    if watch and settings.terminal:
        sys.stdout.write("\x1b[H\x1b[2J")
    print("\n".join(lines), flush=True)


def machine_lines(machine: MachineView, settings: Settings) -> list[str]:
    gpus = len(machine.gpus)
    rows: list[list[Cell]] = [
        ["cpu", f"{machine.cpus:g}", f"{machine.cpus_held:g}", f"{machine.cpu_percent:.0f}%"],
        [
            "memory",
            size(machine.memory_bytes),
            size(machine.memory_held),
            size(machine.memory_used),
        ],
        ["gpu", str(gpus), str(machine.gpus_held), "-"],
        ["replicas", str(machine.pods), str(machine.pods_held), "-"],
    ]
    return table(("MACHINE", "TOTAL", "HELD", "USED"), rows, settings.paint)


def usage_lines(usage: list[tuple[Job, list[PodView]]], settings: Settings) -> list[str]:
    rows: list[list[Cell]] = [
        [
            job.name,
            f"{pod.role}-{pod.index}",
            pod.phase,
            "-" if pod.cpu_percent is None else f"{pod.cpu_percent:.0f}%",
            size(pod.memory_bytes),
            ",".join(pod.gpus) or "-",
        ]
        for job, pods in usage
        for pod in pods
    ]
    if not rows:
        return ["No replica is running."]
    return table(("JOB", "REPLICA", "STATE", "CPU", "MEMORY", "GPU"), rows, settings.paint)


def _may_have_left_servers(job: Job) -> bool:
    """Counts are those at the end, so they stay what they were when the servers have been ended."""
    cleaned = job.spec.clean_pod_policy in (CleanPodPolicy.ALWAYS, CleanPodPolicy.ON_COMPLETION)
    running = any(role.running or role.starting for role in job.status.roles().values())
    return job.status.phase is Phase.COMPLETED and running and not cleaned


def _look(
    client: Client, namespace: str | None
) -> tuple[MachineView, list[tuple[Job, list[PodView]]]]:
    """One request per job, so only of those that may have something running."""
    usage = []
    for job in client.jobs(namespace):
        if job.finished and not _may_have_left_servers(job):
            continue
        pods = [pod for pod in client.pods(job.namespace, job.name) if pod.current]
        alive = [pod for pod in pods if pod.phase in ("Running", "Starting")]
        if alive:
            usage.append((job, alive))
    return client.machine(), usage
