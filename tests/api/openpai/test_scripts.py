"""bash gets what the author wrote: run by the real one, with nothing but the built words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from regatta.api.openpai.scripts import LARGEST_CODE, literal, with_folders
from regatta.controller.environment.references import expand
from tests.api.openpai.configs import PLACE, v1, v2, words
from tests.engines.local.accounts_here import needs_root

NASTY = {
    "dollars of every kind": "echo $x $(echo $x) ${x} $$ | sed s/[0-9]*$/PID/; echo '$(x)' '$$'",
    "a here document": "cat <<END\n$x \\$x `echo $x`\nEND\necho after",
    "a quoted here document": "cat <<'END'\n$x $(x) $$ \\ \"\nEND",
    "quotes in quotes": """echo "it's" 'a "b"' "\\"" '\\' $'\\t|'""",
    "comments": "echo one # two\n# three\necho four #",
    "backslashes": "echo a\\\n  b '\\n' \\\\ \"\\\\\"",
    "carriage returns": "echo one\r\necho two\r\n",
    "a loop over lines": "for i in 1 2; do\n  echo $i\ndone\n[ $i = 2 ] && echo yes || echo no",
    "characters of all tongues": "echo 'grüße 你好 🚣'",
    "globs and tildes": "cd / && echo ?sr ~root {a,b}",
    "no newline at the end": "printf %s x",
    "its own arguments": 'echo "$0" "$#" "$*"',
    "its exit status": "echo out; echo err >&2; exit 7",
    "a failure in between": "false; echo still here",
    "a pipe that fails": "false | true; echo $?",
    "an unset variable": "echo [$nobody_set_this]",
    "a syntax error": "echo before\nif then",
    "a template of v2": "echo '<% $parameters.a %> <% $secrets.a %>'",
    "options": "echo $-",
    "line numbers": "true\ntrue\necho $LINENO",
}


def ran(*command: str, cwd: Path | None = None, **env: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        command, capture_output=True, cwd=cwd, env={"PATH": os.environ["PATH"], "x": "VALUE", **env}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("script", NASTY.values(), ids=list(NASTY))
def test_a_v1_command_reaches_bash_as_it_was_written(script: str) -> None:
    built = words(v1(script), setting=PLACE.__class__())
    assert built[-1] == script
    assert ran(*built) == ran("bash", "-c", script)


@pytest.mark.parametrize("script", NASTY.values(), ids=list(NASTY))
def test_a_v2_command_reaches_bash_as_it_was_written(script: str) -> None:
    if "$secrets" in script:
        script = "echo '<% $parameters.a %>'"
    built = words(v2(script))
    assert built[-1] == script.strip()
    assert ran(*built) == ran("bash", "-eu", "-o", "pipefail", "-c", script.strip())


@pytest.mark.parametrize("config", [v1, v2])
def test_a_command_that_begins_with_a_dash_is_no_option(config: Any) -> None:
    status, out, err = ran(*words(config("-x() { echo ran; }; -x")))
    assert (status, out, err) == (0, b"ran\n", b"")


def test_the_folder_that_it_works_in_is_told(tmp_path: Path) -> None:
    secret = v2("echo $PAI_WORK_DIR <% $secrets.a %>", secrets={"a": "b"})
    told = "echo $PAI_WORK_DIR"
    filled = {"REGATTA_SECRET_0": "b"}
    for built in (words(v1(told)), words(v2(told)), with_folders(told, "", f"{tmp_path}/o")):
        assert ran(*built, cwd=tmp_path)[1].decode() == f"{tmp_path}\n"
    assert ran(*words(secret), cwd=tmp_path, **filled)[1].decode() == f"{tmp_path} b\n"


@pytest.mark.parametrize("script", NASTY.values(), ids=list(NASTY))
def test_folders_before_a_command_change_nothing_about_it(script: str, tmp_path: Path) -> None:
    out = tmp_path / "out" / "deep"
    built = with_folders(script, "", str(out))
    assert script in built
    assert ran(*built) == ran("bash", "-c", script)
    assert out.is_dir()


def test_commands_of_v2_are_trimmed_and_stand_on_lines_of_their_own() -> None:
    assert words(v2("  echo 1 # one \n", "cat <<END\na\nEND", "\techo 3"))[-1] == (
        "echo 1 # one\ncat <<END\na\nEND\necho 3"
    )


@pytest.mark.parametrize("text", ["", "$", "$$", "$(x)", "$$(x)", "$$$(x)", "a$", "$x ${x} $'$'"])
def test_what_is_made_literal_comes_out_as_it_was(text: str) -> None:
    assert expand(literal(text), {"x": "WRONG"}) == text


# Code and output


def a_project(place: Path) -> Path:
    code = place / "files" / "my project"
    (code / "deep").mkdir(parents=True)
    (code / "train.py").write_text("print('trained')\n")
    (code / "deep" / "-odd name.txt").write_text("odd\n")
    (code / "link").symlink_to("train.py")
    (place / "work").mkdir()
    return code


def test_code_is_copied_into_the_working_folder_under_its_own_name(tmp_path: Path) -> None:
    code, work = a_project(tmp_path), tmp_path / "work"
    script = 'cat "my project/train.py" "my project/link" && ls -A'
    status, out, err = ran(*with_folders(script, str(code), ""), cwd=work)
    assert (status, err) == (0, b"")
    assert out == b"print('trained')\n" * 2 + b"my project\n"
    assert (work / "my project/deep/-odd name.txt").read_text() == "odd\n"
    assert (work / "my project/link").is_symlink()


def test_code_that_was_copied_before_is_brought_up_to_date(tmp_path: Path) -> None:
    code, work = a_project(tmp_path), tmp_path / "work"
    built = with_folders("cat 'my project/train.py'; ls -A", str(code), "")
    ran(*built, cwd=work)
    (work / "my project" / "left.txt").write_text("by the program")
    (code / "train.py").write_text("print('better')\n")
    (code / "new").mkdir()
    (code / "new" / "file").touch()
    assert ran(*built, cwd=work) == (0, b"print('better')\nmy project\n", b"")
    assert (work / "my project" / "left.txt").exists()
    assert (work / "my project" / "new" / "file").exists()


def test_code_that_is_in_the_working_folder_already_is_left_alone(tmp_path: Path) -> None:
    code = a_project(tmp_path)
    before = (code / "train.py").stat()
    status, _, err = ran(*with_folders("true", str(code), ""), cwd=code.parent)
    assert (status, err) == (0, b"")
    assert (code / "train.py").stat() == before


def test_replicas_that_share_a_working_folder_all_get_the_code(tmp_path: Path) -> None:
    code, work = a_project(tmp_path), tmp_path / "work"
    built = with_folders("cat 'my project/deep/-odd name.txt'", str(code), "")
    replicas = [subprocess.Popen(built, cwd=work, stdout=subprocess.PIPE) for _ in range(8)]
    assert [replica.communicate()[0] for replica in replicas] == [b"odd\n"] * 8
    assert os.listdir(work) == ["my project"]


def test_one_file_may_be_the_code(tmp_path: Path) -> None:
    code = a_project(tmp_path) / "train.py"
    built = with_folders("cat train.py", str(code), "")
    for _ in range(2):
        assert ran(*built, cwd=tmp_path / "work") == (0, b"print('trained')\n", b"")


def test_code_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    status, out, err = ran(*with_folders("echo ran", f"{tmp_path}/nowhere", ""), cwd=tmp_path)
    assert (status, out) == (1, b"")
    assert err.decode() == (
        f"regatta: codeDir: there is no {tmp_path}/nowhere here. Put the code there, or mount it.\n"
    )


def test_code_that_is_too_large_is_not_copied(tmp_path: Path) -> None:
    code = a_project(tmp_path)
    with (code / "weights").open("wb") as file:
        file.truncate(LARGEST_CODE)
    status, out, err = ran(*with_folders("echo ran", str(code), ""), cwd=tmp_path / "work")
    assert (status, out) == (1, b"")
    assert b"at most 200000000 are copied" in err
    assert os.listdir(tmp_path / "work") == []


def test_code_of_just_the_largest_size_is_copied(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (tmp_path / "work").mkdir()
    with (code / "weights").open("wb") as file:
        file.truncate(LARGEST_CODE)
    built = with_folders("stat -c %s code/weights", str(code), "")
    assert ran(*built, cwd=tmp_path / "work") == (0, b"200000000\n", b"")


def test_what_stands_in_the_way_of_the_code_is_told(tmp_path: Path) -> None:
    code, work = a_project(tmp_path), tmp_path / "work"
    (work / "my project").write_text("a file")
    status, out, err = ran(*with_folders("echo ran", str(code), ""), cwd=work)
    assert (status, out) == (1, b"")
    assert err.decode().splitlines()[-1].startswith("regatta: codeDir: ")
    assert os.listdir(work) == ["my project"]


def test_an_output_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, out, err = ran(*with_folders("echo ran", "", f"{tmp_path}/file/out"))
    assert (status, out) == (1, b"")
    assert f"outputDir: the folder {tmp_path}/file/out cannot be made" in err.decode()


def test_a_folder_that_has_to_be_the_accounts_own_may_be_made_or_be_there(tmp_path: Path) -> None:
    own = tmp_path / "Output" / "ada"
    for job in ("first", "second"):
        built = with_folders(NASTY["its own arguments"], "", f"{own}/{job}", str(own))
        assert ran(*built) == ran("bash", "-c", NASTY["its own arguments"])
    assert sorted(os.listdir(own)) == ["first", "second"]
    assert os.listdir(own.parent) == ["ada"]


@needs_root
@pytest.mark.parametrize("kind", ["another's", "a link to one's own"])
def test_nothing_is_written_into_a_folder_that_is_not_the_accounts_own(
    tmp_path: Path, kind: str
) -> None:
    own = tmp_path / "Output" / "ada"
    (tmp_path / "elsewhere").mkdir()
    own.parent.mkdir()
    if kind == "another's":
        own.mkdir()
        os.chown(own, 65534, 65534)
    else:
        own.symlink_to(tmp_path / "elsewhere")
    status, out, err = ran(*with_folders("echo ran", "", f"{own}/job", str(own)))
    assert (status, out) == (1, b"")
    assert f"regatta: outputDir: {own} is not this account's own folder" in err.decode()
    assert "Ask whoever runs the server to remove it." in err.decode()
    assert os.listdir(own) == []
    assert os.listdir(own.parent) == ["ada"]


@needs_root
def test_where_a_file_system_keeps_no_owners_no_folder_has_to_be_ones_own(tmp_path: Path) -> None:
    """What is made there is another's at once, such as on a share that is mounted for one user."""
    own, programs = tmp_path / "Output" / "ada", tmp_path / "bin"
    own.mkdir(parents=True)
    os.chown(own, 65534, 65534)
    programs.mkdir()
    (programs / "mktemp").write_text('#!/bin/sh\nmkdir "$2" && chown 65534 "$2" && echo "$2"\n')
    (programs / "mktemp").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    built = with_folders("echo ran", "", f"{own}/job", str(own))
    assert ran(*built, PATH=path) == (0, b"ran\n", b"")
    assert os.listdir(own) == ["job"]
    assert os.listdir(own.parent) == ["ada"]
