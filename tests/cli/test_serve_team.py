"""`regatta serve --team` as a command: what it refuses and in which words, what it leaves in its
folder, and how it is reached."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from regatta.cli.outcomes import Exit
from tests.chaos.team_servers import Member, TeamProcess, eventually, job_text
from tests.doors import Regatta
from tests.engines.local.accounts_here import needs_root, place
from tests.server.records.conftest import postgresql, pytest_collection_finish, url
from tests.server.records.postgresql import PostgreSQL

__all__ = ["place", "postgresql", "pytest_collection_finish", "url"]

#: As everybody may start it, root as well.
OPENLY = ("serve", "--team", "--isolation", "none")


@pytest.fixture
def serving(tmp_path: Path, url: str) -> Iterator[TeamProcess]:
    server = TeamProcess(tmp_path, url).start()
    yield server
    server.kill()


def _said(server: TeamProcess, *words: str) -> tuple[int, str]:
    """Exit code and what was said, of a command on the machine of a server."""
    done = subprocess.run(
        server.command(*words),
        env=server.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_second_server_on_the_same_database_refuses(serving: TeamProcess, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    second = TeamProcess(elsewhere, serving.url)
    code, said = _said(second, *OPENLY, "--database", serving.url)
    assert code == Exit.CONFLICT, said
    assert "another server" in said
    assert "keeps its records in" in said
    assert "stop that one, or name another database" in said
    assert "p%40ss" not in said  # of PostgreSQL's address, the password

    serving.kill()
    second.start()  # whoever died holds nothing any more
    second.kill()


def test_a_second_server_in_the_same_folder_refuses(serving: TeamProcess) -> None:
    code, said = _said(serving, *OPENLY, "--database", serving.url)
    assert (code, "a server already runs on" in said) == (Exit.CONFLICT, True), said


def test_a_teams_folder_is_served_to_nobody_without_accounts(serving: TeamProcess) -> None:
    for ends in (False, True):
        code, said = _said(serving, "serve")
        assert code == Exit.CONFLICT, said
        assert "are a team's" in said
        assert "Start its server with --team, or set REGATTA_HOME to another folder" in said
        if not ends:
            serving.stop()


def test_there_is_no_token_that_opens_a_teams_server(serving: TeamProcess) -> None:
    assert not list(serving.state.rglob("server.token*"))


def test_a_token_of_before_opens_nothing_and_is_removed(tmp_path: Path) -> None:
    server = TeamProcess(tmp_path, f"sqlite:///{tmp_path}/team.db")
    assert _said(server, "server", "start")[0] == 0
    [token] = server.state.glob("*/server.token")
    word = token.read_text().strip()
    assert _said(server, "server", "stop")[0] == 0
    server.start()
    try:
        assert not token.exists()
        assert Member(server.port, word).ask("GET", "/regatta/v1/jobs").status == 401
    finally:
        server.kill()


def test_commands_on_the_servers_machine_say_how_to_sign_in(serving: TeamProcess) -> None:
    code, said = _said(serving, "get")
    assert code != 0
    assert "regatta login" in said, said


def test_commands_where_a_teams_server_is_down_start_no_other(serving: TeamProcess) -> None:
    serving.stop()
    code, said = _said(serving, "get")
    assert code != 0
    assert "regatta serve --team" in said, said
    assert not list(serving.state.rglob("server.token*"))


def test_a_server_with_a_certificate_speaks_https_and_nothing_else(tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    flags = ("--tls-cert", str(certificate), "--tls-key", str(key))
    server = TeamProcess(tmp_path, f"sqlite:///{tmp_path}/team.db", *flags)
    trusted = ssl.create_default_context(cafile=str(certificate))
    ann = Member(server.port, server.account("ann").token, trusted)
    process = server.launch()
    try:
        eventually(lambda: f"serving https://127.0.0.1:{server.port}" in server.log, "HTTPS")
        assert process.poll() is None
        assert ann.ask("GET", "/regatta/v1/jobs").body == {"items": []}
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as plain:
            plain.request("GET", "/healthz")
            with pytest.raises((http.client.HTTPException, OSError)):
                plain.getresponse()
    finally:
        server.kill()


REFUSED = {
    "in clear, where others can listen": (
        ("--host", "0.0.0.0"),
        "passwords would cross the network in clear; give --tls-cert FILE and --tls-key FILE, or "
        "--behind-proxy",
    ),
    "behind a proxy, with nothing said of whose processes jobs are": (
        ("--host", "0.0.0.0", "--behind-proxy"),
        "nothing says whose the processes of members' jobs are; add --isolation users",
    ),
    "a name under which it is known, without a scheme": (
        ("--isolation", "none", "--behind-proxy", "--public-url", "train.example"),
        "--public-url is 'train.example'; write a URL without a path",
    ),
    "a database that there is no driver for": (
        ("--isolation", "none", "--database", "mysql://ann@127.0.0.1/team"),
        "mysql",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_not_be_safe_is_not_begun(tmp_path: Path, case: str) -> None:
    words, sentence = REFUSED[case]
    code, said = _said(TeamProcess(tmp_path, "sqlite://"), "serve", "--team", *words)
    assert code == Exit.INVALID, said
    assert sentence in " ".join(said.split())


def test_behind_a_proxy_it_has_to_know_its_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/team.db"
    server = TeamProcess(tmp_path, url, "--behind-proxy").start()
    try:
        assert "add --public-url https://train.example.org" in server.log
        assert _known_as(server, "train.example") == (403, "ForeignHost")
    finally:
        server.kill()
    (tmp_path / "named").mkdir()
    named = TeamProcess(
        tmp_path / "named", url, "--behind-proxy", "--public-url", "https://train.example"
    )
    try:
        named.start()
        assert _known_as(named, "train.example") == (401, "Unauthorized")
        assert _known_as(named, "other.example") == (403, "ForeignHost")
    finally:
        named.kill()
    assert "add --public-url" not in named.log


def _known_as(server: TeamProcess, host: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request("GET", "/regatta/v1/jobs", headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, json.load(answer)["code"]


def test_half_a_certificate_is_refused(tmp_path: Path) -> None:
    certificate, _ = _certificate(tmp_path)
    server = TeamProcess(tmp_path, "sqlite://")
    code, said = _said(server, "serve", "--team", "--tls-cert", str(certificate))
    assert (code, "--tls-cert needs --tls-key" in said) == (Exit.INVALID, True), said


WRONG_PAIRS = {
    "swapped": (lambda cert, key: (key, cert), "--tls-cert: {1} holds no certificate"),
    "no key": (lambda cert, _: (cert, cert), "--tls-key: {0} holds no private key"),
    "of another": (
        lambda cert, _: (cert, _another_key(cert.parent)),
        "other.pem is not the key of the first certificate in {0}",
    ),
}


def _another_key(folder: Path) -> Path:
    key = folder / "other.pem"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "RSA", "-out", str(key)],
        check=True,
        capture_output=True,
    )
    return key


@pytest.mark.parametrize("case", WRONG_PAIRS)
def test_files_that_are_no_pair_are_told_apart(tmp_path: Path, case: str) -> None:
    certificate, key = _certificate(tmp_path)
    choose, sentence = WRONG_PAIRS[case]
    given = map(str, choose(certificate, key))
    pair = [word for both in zip(("--tls-cert", "--tls-key"), given, strict=True) for word in both]
    code, said = _said(TeamProcess(tmp_path, "sqlite://"), "serve", "--team", *pair)
    assert code == Exit.INVALID, said
    assert sentence.format(certificate, key) in " ".join(said.split())
    assert "--port" not in said


def test_flags_of_teams_mean_nothing_without_one(tmp_path: Path) -> None:
    server = TeamProcess(tmp_path, "sqlite://")
    code, said = _said(server, "serve", "--database", "sqlite:///x.db")
    assert (code, "--database is about a team's server" in said) == (Exit.INVALID, True), said


def test_a_server_without_accounts_says_so(tmp_path: Path) -> None:
    server = TeamProcess(tmp_path, f"sqlite:///{tmp_path}/team.db").start()
    try:
        assert "nobody can sign in yet: `regatta users add --admin NAME`" in server.log
        assert f"  database: {tmp_path}/team.db\n  visibility: own\n" in server.log
        assert f"  isolation: none; jobs work in {tmp_path}/work\n" in server.log
    finally:
        server.kill()


@needs_root
@pytest.mark.parametrize("isolation", ["users", "none"])
def test_where_members_write_is_made_at_the_start_where_each_is_an_account(
    place: Path, isolation: str
) -> None:
    share = place / "share"
    share.mkdir()
    share.chmod(0o777)
    server = TeamProcess(place, f"sqlite:///{place}/team.db", "--isolation", isolation)
    folders = {"work": str(place / "work"), "register": str(place / "uids")}
    team = {"defaultFsUri": str(share), "isolation": folders}
    (server.state / "config.yaml").write_text(json.dumps({"team": team}))
    server.start()
    warned = f"warning: others can write to {share} (mode 777)"
    try:
        assert (warned in server.log) is (isolation == "users")
        server.stop()
        share.chmod(0o755)
        server.start()
        assert server.log.count(warned) == (isolation == "users")
        assert (share / "Output").is_dir() is (isolation == "users")
    finally:
        server.kill()


def test_what_is_weaker_than_before_has_to_be_asked_for_on_the_command_line(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/team.db"
    server = TeamProcess(tmp_path, url).start()
    server.stop()
    [mark] = server.state.glob("*/isolation")
    assert mark.read_text() == "none"
    mark.write_text("users")  # as root had it
    (server.state / "config.yaml").write_text("team: {isolation: {kind: none}}")
    code, said = _said(server, "serve", "--team", "--database", url)
    assert code == Exit.INVALID, said
    assert "last ran with users, which kept members apart" in " ".join(said.split())
    server.start()
    server.stop()
    assert mark.read_text() == "none"


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Made by us, for this machine."""
    openssl = shutil.which("openssl")
    assert openssl, "tests of TLS need openssl"
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=regatta"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *words, *files], check=True, capture_output=True)
    return certificate, key


def test_a_password_that_others_could_read_is_refused(tmp_path: Path) -> None:
    regatta = Regatta(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    config = home / "config.yaml"
    config.write_text("team: {database: 'postgresql://regatta:verysecret@127.0.0.1:1/none'}\n")
    config.chmod(0o644)
    refused = regatta("serve", "--team", "--isolation", "none")
    assert refused.code != 0
    assert f"chmod 600 {config}" in refused.err
    assert "verysecret" not in refused.err
    config.chmod(0o600)
    assert "does not answer" in regatta("serve", "--team", "--isolation", "none").err


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("users", "list"), "database of its URL."),
        (("users", "add", "ann", "--password-file", "word"), "database of its URL."),
        (OPENLY, "database of its URL. The server does not start without it."),
    ],
)
def test_a_database_that_refuses_us_is_told_as_that(
    tmp_path: Path, postgresql: PostgreSQL, words: tuple[str, ...], end: str
) -> None:
    (tmp_path / "word").write_text("a long word\n")
    wrong = postgresql.url("postgres", password="not-that-one")
    refused = Regatta(tmp_path)(*words, "--database", wrong)
    assert refused.code == Exit.UNREACHABLE
    assert "refuses us: password authentication failed for user" in refused.err
    assert refused.err.rstrip().endswith(end)
    for absent in ("next request", "Jobs run on", "not-that-one"):
        assert absent not in refused.err


def test_the_database_may_be_named_by_the_shell(tmp_path: Path) -> None:
    regatta = Regatta(tmp_path)
    named = f"sqlite:///{tmp_path}/named.db"
    (tmp_path / "word").write_text("a long word\n")
    words = ("users", "add", "--admin", "boss", "--password-file", str(tmp_path / "word"))
    assert regatta(*words, REGATTA_DATABASE=named).code == 0
    assert (tmp_path / "named.db").exists()
    assert "boss" in regatta("users", "list", REGATTA_DATABASE=named).out


def test_a_database_of_another_state_folder_is_told_at_the_start(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/team.db"
    for folder in ("own", "other"):
        (tmp_path / folder).mkdir()
    own, other = (TeamProcess(tmp_path / folder, url) for folder in ("own", "other"))
    own.start()
    try:
        ann = own.account("ann")
        assert ann.submit(job_text("lives", "sleep 600"), "lives").status == 201
        own.kill()
        own.start()
        assert "the engine at" not in own.log
        own.kill()
        other.start()
        said = f"such as ann~lives, the engine at {other.state}"
        eventually(lambda: said in other.log, "the warning")
        other.kill()
        own.start()
        ann.ask("DELETE", "/regatta/v1/namespaces/user-ann/jobs?live=true")
    finally:
        other.kill()
        own.kill()


def test_a_database_that_was_moved_away_is_not_begun_anew(tmp_path: Path) -> None:
    """As a service would, that is started again whenever it leaves."""
    url, moved = f"sqlite:///{tmp_path}/team.db", tmp_path / "moved"
    server = TeamProcess(tmp_path, url).start()
    ann = server.account("ann")
    server.kill()
    (tmp_path / "team.db").rename(moved)
    for words in ((*OPENLY, "--database", url), ("users", "list", "--database", url)):
        code, said = _said(server, *words)
        assert code == Exit.INVALID, said
        assert f"the team's database {tmp_path}/team.db" in said
        assert not (tmp_path / "team.db").exists()
    moved.rename(tmp_path / "team.db")
    server.start()
    try:
        assert ann.ask("GET", "/regatta/v1/whoami").status == 200
    finally:
        server.kill()


def test_another_database_than_before_is_told_at_the_start(tmp_path: Path) -> None:
    server = TeamProcess(tmp_path, f"sqlite:///{tmp_path}/team.db").start()
    server.kill()
    assert "until now" not in server.log
    server.url = f"sqlite:///{tmp_path}/other.db"
    server.start()
    server.kill()
    assert f"kept in {tmp_path}/other.db from now on, and were in {tmp_path}/team.db" in server.log
