"""Which engine a command speaks to: the command line's word, the shell's, then the file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from regatta.cli.engine_choice import Chosen, Given, choose
from regatta.cli.outcomes import Exit, Stop

K = "kubernetes"

CHOICES = {
    "nothing is said": ({}, {}, "", Chosen()),
    "the command line says it": ({"engine": K}, {}, "", Chosen(K)),
    "a context is named": ({"context": "prod"}, {}, "", Chosen(K, "prod")),
    "a kubeconfig is named": ({"kubeconfig": "/k"}, {}, "", Chosen(K, None, Path("/k"))),
    "the shell says it": ({}, {"REGATTA_ENGINE": K}, "", Chosen(K)),
    "the command line is stronger": ({"engine": "local"}, {"REGATTA_ENGINE": K}, "", Chosen()),
    "a server is named": ({"server": "http://x"}, {"REGATTA_ENGINE": K}, "", Chosen()),
    "the file names a context": (
        {},
        {},
        "context: prod\nnamespace: team\n",
        Chosen(K, "prod", None, "team"),
    ),
    "the file's context is not this one": (
        {"context": "test"},
        {},
        "context: prod\nnamespace: team\n",
        Chosen(K, "test"),
    ),
    "the shell's server is stronger than the file": (
        {},
        {"REGATTA_SERVER": "http://x"},
        "engine: kubernetes\n",
        Chosen(),
    ),
    "an empty file": ({}, {}, "# nothing yet\n", Chosen()),
}

REFUSED = {
    "a server and a cluster": ({"server": "http://x", "engine": K}, "", "Leave --server out"),
    "this machine and a cluster": ({"engine": "local", "context": "x"}, "", "Leave one of them"),
    "an engine that is none": ({}, "engine: slurm\n", "Write local or kubernetes."),
    "a word that is none": ({}, "contxt: prod\n", "It may hold engine, context"),
    "no text": ({}, "context: 5\n", "Write text."),
    "no YAML": ({}, "retention: [\n", "Meanwhile commands with `--engine local` go"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("REGATTA_ENGINE", "REGATTA_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REGATTA_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("case", CHOICES.values(), ids=list(CHOICES))
def test_the_engine_is_chosen(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[dict[str, str], dict[str, str], str, Chosen],
) -> None:
    given, environment, file, chosen = case
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if file:
        (home / "config.yaml").write_text(file)

    assert choose(Given(**given)) == chosen


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
def test_words_that_do_not_go_together_are_refused(
    home: Path, case: tuple[dict[str, str], str, str]
) -> None:
    given, file, hint = case
    (home / "config.yaml").write_text(file)

    with pytest.raises(Stop) as refused:
        choose(Given(**given))

    assert refused.value.code is Exit.INVALID
    assert hint in refused.value.hint


def test_a_file_that_is_no_map_is_refused(home: Path) -> None:
    (home / "config.yaml").write_text("- kubernetes\n")

    with pytest.raises(Stop, match="Write lines such as"):
        choose(Given())
    assert choose(Given("local")) == Chosen()


def test_what_the_file_says_to_the_server_is_warned_of_and_stops_no_command(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.yaml").write_text("retention: {age: 90d, runs: 10}\n")
    assert choose(Given()) == Chosen()
    assert capsys.readouterr().err == ""

    for file in ("retention: {runs: many}\n", "retentoin: {runs: 5}\n", "retention: 90d\n"):
        (home / "config.yaml").write_text(file + "engine: kubernetes\n")
        assert choose(Given()).engine == K
        said = capsys.readouterr().err
        assert said.startswith(f"warning: {home}/config.yaml: reten")
        assert said.endswith("A server that starts now removes nothing.\n")


def test_the_next_command_line_repeats_what_was_said() -> None:
    given = Given(engine=K, context="prod")

    assert given.again == " --engine kubernetes --context prod"
    assert Given().again == ""
