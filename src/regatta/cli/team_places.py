"""Where a team's server keeps its files, and what `config.yaml` says of it: for the server and for
the commands about its accounts, which start none."""

from __future__ import annotations

import os
from pathlib import Path

from regatta.api.errors import BadSetting
from regatta.cli.engine_choice import KUBERNETES, Chosen, config_path
from regatta.engines.local.config_file import load_config
from regatta.engines.local.home import Home
from regatta.server.records.database_url import read_url
from regatta.server.team.team_settings import (
    SECTION,
    TeamSettings,
    read_team_settings,
    team_database_url,
)


def team_settings() -> TeamSettings:
    """As `config.yaml` has them. Raises BadSetting, also where others could read a password."""
    path = config_path()
    settings = read_team_settings(path, load_config(path).get(SECTION))
    told = settings.database and read_url(settings.database).has_password
    if told and path.stat().st_mode & 0o077:
        raise BadSetting(
            f"{path} holds the password of the team's database, and others can read the file, "
            f"jobs among them: `chmod 600 {path}`"
        )
    return settings


def team_database(given: str | None, folder: Path, settings: TeamSettings) -> str:
    """Its URL: the command line's, else the shell's, which no list of processes shows, else as the
    settings say."""
    named = given or os.environ.get("REGATTA_DATABASE")
    return named or team_database_url(folder, settings)


def team_folder(chosen: Chosen, home: Home) -> Path:
    """Where the files of a team's server in front of this engine are."""
    if chosen.engine != KUBERNETES:
        return home.path
    from regatta.daemon.find import cluster_files
    from regatta.engines.kubernetes.engine.engine import cluster_access

    return cluster_files(home, cluster_access(chosen.kubeconfig, chosen.context).context).folder
