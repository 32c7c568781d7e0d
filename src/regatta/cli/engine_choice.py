"""Which engine a command speaks to: the command line's word, else the shell's, else the file's.

The file is `config.yaml` in the state folder. It is read only where nothing else decides.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from regatta.cli.outcomes import Exit, Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from regatta.api.job import Job
    from regatta.api.problems import Problem
    from regatta.engines.base import Engine, Shell, Submission
    from regatta.engines.blocking import Blocking
    from regatta.engines.local.home import Home

LOCAL, KUBERNETES = "local", "kubernetes"
ENGINES = (LOCAL, KUBERNETES)
_FAR_ENDS = {LOCAL: "server", KUBERNETES: "cluster"}


class Given(NamedTuple):
    """What the command line says."""

    engine: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    server: str | None = None

    @property
    def names_cluster(self) -> bool:
        return self.engine == KUBERNETES or bool(self.context or self.kubeconfig)

    @property
    def again(self) -> str:
        """What the next command line must say again to reach the same engine."""
        words = [f"--engine {self.engine}"] if self.engine == KUBERNETES else []
        words += [f"--context {self.context}"] if self.context else []
        words += [f"--kubeconfig {self.kubeconfig}"] if self.kubeconfig else []
        words += [f"--server {self.server}"] if self.server else []
        return "".join(f" {word}" for word in words)


class Chosen(NamedTuple):
    engine: str = LOCAL
    context: str | None = None
    kubeconfig: Path | None = None
    #: For the cluster's jobs; the context's own when empty.
    namespace: str = ""

    @property
    def far_end(self) -> str:
        """What the command talks to, in a word."""
        return _FAR_ENDS[self.engine]

    def open(self, server: str | None, *, start: bool) -> Blocking:
        """A cluster, or the server that is named, or this machine's own."""
        if self.engine == KUBERNETES:
            from regatta.engines.kubernetes.engine.engine import open_cluster

            return open_cluster(self.kubeconfig, self.context, self.namespace)
        from regatta.client.connect import connect

        return connect(server, start=start)

    @property
    def access(self) -> str:
        """By which file or account a cluster is asked; nothing for a server."""
        if self.engine != KUBERNETES:
            return ""
        from regatta.engines.kubernetes.engine.engine import cluster_access

        return cluster_access(self.kubeconfig, self.context).how

    def check(self, submission: Submission, shell: Shell | None) -> tuple[Job, tuple[Problem, ...]]:
        """The job, and its warnings, or the refusal that a submit would meet: worked out here,
        without this machine's server and without a cluster."""
        if self.engine == KUBERNETES:
            from regatta.api.defaults import NAMESPACE
            from regatta.engines.kubernetes.engine.submit import read
            from regatta.engines.shell_refusal import refuse_shell

            refuse_shell(shell)
            loaded = read(submission, self.namespace or NAMESPACE)
            return loaded.job, loaded.warnings
        from regatta.engines.base import Shell
        from regatta.engines.local.submit.prepare import check_here

        prepared = check_here(submission, shell or Shell())
        return prepared.job, prepared.warnings

    def hosted(self, home: Home) -> tuple[Path, Callable[[], Engine]]:
        """For a server: the folder of its own files, and the engine to serve, not yet open."""
        if self.engine == KUBERNETES:
            from regatta.daemon.find import cluster_files
            from regatta.engines.kubernetes.engine.engine import KubernetesEngine, cluster_access

            access = cluster_access(self.kubeconfig, self.context)
            folder = cluster_files(home, access.context).folder
            return folder, lambda: KubernetesEngine(access, namespace=self.namespace, wide=True)
        from regatta.engines.local.engine import LocalEngine

        return home.path, lambda: LocalEngine(home)


class ConfigFile(NamedTuple):
    engine: str = ""
    context: str = ""
    kubeconfig: str = ""
    namespace: str = ""


def choose(given: Given) -> Chosen:
    if given.engine == LOCAL:
        if given.context or given.kubeconfig:
            raise Stop(
                Exit.INVALID,
                "--engine local is this machine; --context and --kubeconfig name a cluster",
                "Leave one of them out.",
            )
        return Chosen()
    if given.server and given.names_cluster:
        raise Stop(
            Exit.INVALID,
            "--server names a Regatta server; a cluster is asked directly, without one",
            "Leave --server out, or --engine kubernetes, --context and --kubeconfig.",
        )
    if given.names_cluster:
        return _cluster(given, read_config())
    if given.server:
        return Chosen()
    said = os.environ.get("REGATTA_ENGINE", "")
    if said and said not in ENGINES:
        raise Stop(Exit.INVALID, f"REGATTA_ENGINE is {said!r}", "Set it to local or kubernetes.")
    if said == LOCAL or (not said and os.environ.get("REGATTA_SERVER")):
        return Chosen()
    file = read_config()
    named = said or file.engine or (KUBERNETES if file.context or file.kubeconfig else LOCAL)
    return _cluster(given, file) if named == KUBERNETES else Chosen()


def _cluster(given: Given, file: ConfigFile) -> Chosen:
    same = given.context in (None, file.context) and given.kubeconfig in (None, file.kubeconfig)
    # A kubeconfig of one's own has contexts of its own.
    context = given.context or (file.context if same else "")
    kubeconfig = given.kubeconfig or file.kubeconfig
    return Chosen(
        KUBERNETES,
        context or None,
        Path(kubeconfig).expanduser() if kubeconfig else None,
        file.namespace if same else "",
    )


def config_path() -> Path:
    from regatta.engines.local import config_file
    from regatta.engines.local.home import home_root

    try:
        return home_root() / config_file.NAME
    except RuntimeError as homeless:
        raise Stop(
            Exit.INVALID,
            "there is no home folder: HOME is not set and the system knows none for this user",
            "Set REGATTA_HOME to a folder of yours.",
        ) from homeless


def read_config() -> ConfigFile:
    from regatta.api.errors import BadSetting
    from regatta.engines.local.config_file import RETENTION, load_config, take_retention

    path = config_path()
    try:
        content = load_config(path)
    except BadSetting as bad:
        meanwhile = (
            "Meanwhile commands with `--engine local` go to this machine; a team's server needs "
            "the file."
        )
        raise Stop(Exit.INVALID, str(bad).rstrip("."), meanwhile) from bad
    if problem := take_retention(path, content).problem:  # the server's, and no command fails by it
        click.echo(f"warning: {problem} A server that starts now removes nothing.", err=True)
    content.pop("team", None)  # for a team's server alone
    for name, value in content.items():
        if name not in ConfigFile._fields:
            fields = ", ".join([*ConfigFile._fields, RETENTION, "team"])
            raise Stop(Exit.INVALID, f"{path}: {name!r} is unknown", f"It may hold {fields}.")
        if not isinstance(value, str):
            raise Stop(Exit.INVALID, f"{path}: {name} is {value!r}", "Write text.")
    if content.get("engine", LOCAL) not in ENGINES:
        found = content["engine"]
        raise Stop(Exit.INVALID, f"{path}: engine is {found!r}", f"Write {' or '.join(ENGINES)}.")
    return ConfigFile(**content)
