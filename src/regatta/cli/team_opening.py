"""From a command line and `config.yaml` to a team's server that can be started."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

from regatta.api.errors import BadSetting
from regatta.cli.engine_choice import KUBERNETES, Chosen, config_path
from regatta.cli.team_places import team_database, team_folder, team_settings
from regatta.daemon.server_files import Address
from regatta.engines.base import Engine
from regatta.engines.local.home import Home
from regatta.server.accounts.visibility import Visibility
from regatta.server.origins import is_origin
from regatta.server.records.database_url import read_url
from regatta.server.records.team_database import Database
from regatta.server.team.grounds import ClusterGrounds, Grounds, MachineGrounds
from regatta.server.team.isolating.isolation import Isolation, IsolationSettings
from regatta.server.team.isolating.isolation_settings import SECTION, isolation_of
from regatta.server.team.isolating.last_isolation import remember, require_no_weaker
from regatta.server.team.isolating.outputs import open_output
from regatta.server.team.serve_team import Opening, serve_team
from regatta.server.team.team_settings import TeamSettings, about_share, share_of
from regatta.server.tls_files import require_pair
from regatta.server.transport_rules import is_loopback, transport_of

NO_PUBLIC_URL = (
    "nothing says under which name clients know the proxy, and requests for another name than "
    "this machine's are refused; add --public-url https://train.example.org, or "
    "team.publicUrls to the settings"
)

OpenEngine = Callable[[Database], tuple[Engine, Grounds]]


def team_server(
    chosen: Chosen,
    home: Home,
    host: str,
    *,
    database: str | None,
    isolation: str | None,
    visibility: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool,
    public_urls: tuple[str, ...],
) -> tuple[Path, Callable[[str, int], int]]:
    """Its folder, and what serves it on a host and port; the latter answers the exit status."""
    settings = team_settings()
    if visibility:
        settings = dataclasses.replace(settings, visibility=Visibility(visibility))
    if public_urls:
        settings = dataclasses.replace(settings, public_urls=_urls(public_urls))
    transport = transport_of(host, tls_cert=tls_cert, tls_key=tls_key, behind_proxy=behind_proxy)
    if transport.tls is not None:
        require_pair(*transport.tls)
    folder = team_folder(chosen, home)
    told: list[str] = []
    if chosen.engine == KUBERNETES:
        open_engine = _on_cluster(chosen)
    else:
        open_engine = _on_machine(home, settings, isolation, host, told.append)
    database_url = team_database(database, folder, settings)
    opening = Opening(
        folder=folder,
        database_url=database_url,
        settings=settings,
        engine_name=chosen.engine,
        open_engine=open_engine,
        transport=transport,
    )

    if transport.behind_proxy and not settings.public_urls:
        print(f"warning: {NO_PUBLIC_URL}", file=sys.stderr, flush=True)

    def ready(address: Address, has_accounts: bool) -> None:
        lines = [
            f"serving {address.url} for a team",
            *([] if is_loopback(host) else [f"listens on: {host}, for other machines, too"]),
            f"state: {folder}",
            f"database: {read_url(database_url)}",
            f"visibility: {settings.visibility.value}",
            *told,
        ]
        print("\n  ".join(lines), flush=True)
        if not has_accounts:
            print("  nobody can sign in yet: `regatta users add --admin NAME`", flush=True)

    return folder, lambda host, port: serve_team(opening, host=host, port=port, ready=ready)


def _urls(said: tuple[str, ...]) -> tuple[str, ...]:
    for url in said:
        if not is_origin(url):
            raise BadSetting(
                f"--public-url is {url!r}; write a URL without a path, such as "
                "https://train.example.org"
            )
    return said


def _on_cluster(chosen: Chosen) -> OpenEngine:
    from regatta.engines.kubernetes.engine.engine import KubernetesEngine, cluster_access

    access = cluster_access(chosen.kubeconfig, chosen.context)

    def open_engine(_: Database) -> tuple[Engine, Grounds]:
        engine = KubernetesEngine(access, namespace=chosen.namespace, wide=True, members_only=True)
        return engine, ClusterGrounds(engine)

    return open_engine


def _on_machine(
    home: Home,
    settings: TeamSettings,
    kind: str | None,
    host: str,
    tell: Callable[[str], None],
) -> OpenEngine:
    """`tell`: hears a line for whoever starts it, once it is open."""
    from regatta.engines.local.engine import LocalEngine

    wanted = isolation_of(settings.isolation, kind, host, file=config_path())
    accounts = wanted.kind == "users"
    share = share_of(settings.default_fs_uri, config_path())

    def open_engine(database: Database) -> tuple[Engine, Grounds]:
        require_no_weaker(home.path, wanted.kind, on_command_line=kind is not None)
        isolation = _isolation(wanted, database, home, settings)
        remember(home.path, wanted.kind)
        output = open_output(share) if accounts and share is not None else ()
        for remark in (*isolation.remarks(), *about_share(share), *output):
            print(f"warning: {remark}", file=sys.stderr, flush=True)
        tell(f"isolation: {isolation.describe()}")
        return LocalEngine(home), MachineGrounds(isolation)

    return open_engine


def _isolation(
    wanted: IsolationSettings, database: Database, home: Home, settings: TeamSettings
) -> Isolation:
    try:
        return Isolation(wanted, database, home.path)
    except BadSetting as wrong:
        if str(wrong).partition(":")[0] not in settings.isolation:
            raise  # nothing in the file says so
        raise BadSetting(f"{config_path()}: {SECTION}.{wrong}") from None
