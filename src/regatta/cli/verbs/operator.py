"""`regatta operator`: looks after the PaddleJobs of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regatta.cli.outcomes import Exit, Stop
from regatta.cli.settings import HELP_NAMES

if TYPE_CHECKING:
    from regatta.engines.kubernetes.operator.health import Address


def _switch(name: str, *, help: str) -> Callable[[Any], Any]:
    """On or off as manifests write it, whose flags are mostly Go's: `--x`, `--x=false`."""
    return click.option(
        name,
        type=bool,
        is_flag=False,
        flag_value="true",
        default=False,
        metavar="[=true|false]",
        help=help,
    )


@click.command("operator", context_settings=HELP_NAMES)
@click.option("--namespace", default="", metavar="NAME", help="Only this one; all unless given.")
@_switch("--leader-elect", help="Of several operators let only one work at a time.")
@click.option(
    "--leader-elect-namespace",
    default="",
    metavar="NAME",
    help="Where the Lease is; the operator's own namespace unless given.",
)
@click.option(
    "--metrics-bind-address", default=":8080", show_default=True, help="For Prometheus; 0: none."
)
@click.option(
    "--health-probe-bind-address",
    default=":8081",
    show_default=True,
    help="For /healthz and /readyz; 0: none.",
)
@click.option(
    "--scheduling",
    type=click.Choice(["", "volcano", "native"]),
    default="",
    help="Gang scheduler of jobs that name none.",
)
@click.option(
    "--initImage",
    "--init-image",
    "init_image",
    default="",
    metavar="IMAGE",
    help="Adds an init container that waits for the peers' names (intranet: Service).",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    default=16,
    show_default=True,
    help="Jobs looked at side by side.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Else KUBECONFIG, else ~/.kube/config, else the pod's own account.",
)
@click.option("--context", "context_name", metavar="NAME", help="Of the kubeconfig.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
def command(
    namespace: str,
    leader_elect: bool,
    leader_elect_namespace: str,
    metrics_bind_address: str,
    health_probe_bind_address: str,
    scheduling: str,
    init_image: str,
    concurrency: int,
    kubeconfig: Path | None,
    context_name: str | None,
    log_level: str,
) -> Exit:
    """Look after the PaddleJobs of a Kubernetes cluster, until SIGTERM.

    Jobs go on running while no operator does; nothing new is started for them meanwhile.
    """
    from regatta.engines.kubernetes.access.config import load_access
    from regatta.engines.kubernetes.api.kube_errors import ConfigError
    from regatta.engines.kubernetes.operator.json_logging import log_as_json
    from regatta.engines.kubernetes.operator.launch import run_operator
    from regatta.engines.kubernetes.operator.operator import OperatorSettings

    try:
        access = load_access(kubeconfig, context_name)
    except ConfigError as wrong:
        raise Stop(
            Exit.INVALID,
            str(wrong),
            "Name a kubeconfig with --kubeconfig, or run the operator inside the cluster.",
        ) from wrong
    settings = OperatorSettings(
        namespace=namespace,
        leader_elect=leader_elect,
        lease_namespace=leader_elect_namespace,
        metrics_address=_address("--metrics-bind-address", metrics_bind_address),
        health_address=_address("--health-probe-bind-address", health_probe_bind_address),
        scheduling=scheduling,
        init_image=init_image,
        concurrency=concurrency,
    )
    log_as_json(log_level)
    return Exit.OK if run_operator(access, settings) else Exit.FAILED


def _address(option: str, text: str) -> Address | None:
    from regatta.engines.kubernetes.operator.health import parse_address

    try:
        return parse_address(text)
    except ValueError as wrong:
        raise click.UsageError(f"{option}: {wrong}") from wrong
