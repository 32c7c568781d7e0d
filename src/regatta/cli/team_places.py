"""Where a team's server keeps its files, and what `config.yaml` says of it: for the server and for
the commands about its accounts, which start none."""

from __future__ import annotations

from pathlib import Path

from regatta.cli.engine_choice import KUBERNETES, Chosen, config_path
from regatta.engines.local.config_file import load_config
from regatta.engines.local.home import Home
from regatta.server.team.team_settings import SECTION, TeamSettings, read_team_settings


def team_settings() -> TeamSettings:
    """As `config.yaml` has them."""
    path = config_path()
    return read_team_settings(path, load_config(path).get(SECTION))


def team_folder(chosen: Chosen, home: Home) -> Path:
    """Where the files of a team's server in front of this engine are."""
    if chosen.engine != KUBERNETES:
        return home.path
    from regatta.daemon.find import cluster_files
    from regatta.engines.kubernetes.engine.engine import cluster_access

    return cluster_files(home, cluster_access(chosen.kubeconfig, chosen.context).context).folder
