"""Where code, data and output are, and which of it can be reached."""

from __future__ import annotations

from typing import Any

import pytest

from regatta.api.errors import InvalidConfig
from regatta.api.openpai.wanted import Setting
from tests.api.openpai.configs import converted, v1, variables, warnings, words

ROOTS = {"a path": "/srv/files", "with a slash": "/srv/files/", "a URI": "file:///srv/files"}


def reached(config: dict[str, Any], root: str = "/srv/files") -> tuple[str, str]:
    """The folder of code and the one for output, as the replica is given them."""
    found = words(config, Setting(user="ada", default_fs_uri=root))
    return (found[5], found[6]) if len(found) > 5 else ("", "")


@pytest.mark.parametrize("root", ROOTS.values(), ids=list(ROOTS))
def test_a_folder_below_the_root_is_reached_however_the_root_is_written(root: str) -> None:
    config = v1(codeDir="$PAI_DEFAULT_FS_URI/a/./code/", outputDir="$PAI_DEFAULT_FS_URI/out")
    assert reached(config, root) == ("/srv/files/a/code", "/srv/files/out")


@pytest.mark.parametrize(
    ("written", "right"),
    {
        "$PAI_DEFAULT_FS_URI/$PAI_JOB_NAME": "/srv/files/job",
        "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_USERNAME": "/srv/files/ada/ada",
        "$PAI_DEFAULT_FS_URI/$PAI_JOB_NAMES": "/srv/files/$PAI_JOB_NAMES",
        "$PAI_DEFAULT_FS_URI/$PAI_JOB_NAME.d": "/srv/files/job.d",
        "$PAI_DEFAULT_FS_URI/$HOME": "/srv/files/$HOME",
        "hdfs://h/$PAI_JOB_NAME": "hdfs://h/job",
    }.items(),
)
def test_variables_in_paths_are_whole_words(written: str, right: str) -> None:
    config = v1(dataDir=written, codeDir=written, outputDir=written)
    seen = variables(config)
    assert {seen[name] for name in ("PAI_DATA_DIR", "PAI_CODE_DIR", "PAI_OUTPUT_DIR")} == {right}


def test_output_has_a_folder_of_the_job_where_there_is_a_place_for_it() -> None:
    assert variables(v1())["PAI_OUTPUT_DIR"] == "/srv/files/Output/ada/job"
    assert reached(v1()) == ("", "/srv/files/Output/ada/job")
    assert variables(v1(), Setting(user="ada"))["PAI_OUTPUT_DIR"] == ""
    assert words(v1("ls"), Setting(user="ada"))[3:] == ["bash", "ls"]


@pytest.mark.parametrize("root", ROOTS.values(), ids=list(ROOTS))
def test_an_accounts_folder_for_output_has_to_be_its_own(root: str) -> None:
    place = Setting(user="ada", default_fs_uri=root, accounts=True)
    whole = "$PAI_DEFAULT_FS_URI/Output/$PAI_USER_NAME"
    written = [v1(outputDir=place) for place in (whole, f"{whole}/a/b")]
    for config in (v1(), v1(codeDir="$PAI_DEFAULT_FS_URI/code"), *written):
        assert converted(config, place).own_output == "/srv/files/Output/ada"
        assert words(config, place)[7:] == ["/srv/files/Output/ada"]


@pytest.mark.parametrize(
    ("written", "user"),
    [
        ("$PAI_DEFAULT_FS_URI/results", "ada"),
        ("$PAI_DEFAULT_FS_URI/Output/bob/x", "ada"),
        ("/srv/elsewhere/Output/ada/x", "ada"),
        ("hdfs://h/Output/ada/x", "ada"),
        ("", ".."),
        ("", "."),
    ],
)
def test_no_other_folder_has_to_be_an_accounts_own(written: str, user: str) -> None:
    place = Setting(user=user, default_fs_uri="/srv/files", accounts=True)
    config = v1(outputDir=written) if written else v1()
    assert converted(config, place).own_output == ""
    assert words(config, place)[7:] == []


def test_where_jobs_are_nobodys_account_no_folder_has_to_be_its_own() -> None:
    assert converted(v1()).own_output == ""
    assert words(v1())[7:] == []


def test_names_in_a_uri_may_be_percent_encoded() -> None:
    config = v1(codeDir="file://localhost/srv/files/my%20code")
    assert reached(config)[0] == "/srv/files/my code"
    assert variables(config)["PAI_CODE_DIR"] == "file://localhost/srv/files/my%20code"


@pytest.mark.parametrize(
    "written",
    [
        "/etc",
        "/srv/files",
        "/srv/files/",
        "/srv/filesystem",
        "/srv/files/../other",
        "//srv/files/../../etc",
        "$PAI_DEFAULT_FS_URI/..",
        "$PAI_DEFAULT_FS_URI/a/../../b",
        "file:///etc",
        "file:///srv/files/%2e%2e/etc",
    ],
)
@pytest.mark.parametrize("field", ["codeDir", "outputDir"])
def test_what_is_outside_the_root_is_neither_copied_nor_made(field: str, written: str) -> None:
    config = v1("ls", **{field: written})
    if field == "codeDir":
        with pytest.raises(InvalidConfig, match="not below /srv/files") as caught:
            converted(config)
        assert [problem.path for problem in caught.value.problems] == [field]
    else:
        assert "not made" in warnings(config)[field]
        assert variables(config)["PAI_OUTPUT_DIR"] == written.replace(
            "$PAI_DEFAULT_FS_URI", "/srv/files"
        )
        assert words(config)[-1] == "ls"


def test_a_root_that_is_no_whole_path_is_told_as_what_is_wrong() -> None:
    with pytest.raises(InvalidConfig, match='PAI_DEFAULT_FS_URI is "share"; set it to an absolute'):
        converted(v1(codeDir="$PAI_DEFAULT_FS_URI/code"), Setting(default_fs_uri="share"))


@pytest.mark.parametrize("written", ["$PAI_DEFAULT_FS_URI/code", "/code"])
@pytest.mark.parametrize("servers", [False, True])
def test_without_a_root_whoever_can_name_one_is_told_how(written: str, servers: bool) -> None:
    with pytest.raises(InvalidConfig) as caught:
        converted(v1(codeDir=written), Setting(user="ada", fs_uri_is_servers=servers))
    (problem,) = caught.value.problems
    assert ("regatta run FILE" in problem.message) == (not servers)
    assert ("team.defaultFsUri" in problem.message) == servers


@pytest.mark.parametrize(("said", "told"), [("/srv/mine", True), ("/srv/files", False)])
def test_who_names_another_root_than_the_servers_is_told(said: str, told: bool) -> None:
    root = Setting(default_fs_uri="/srv/files", fs_uri_is_servers=True, unheard_fs_uri=said)
    found = warnings(v1(dataDir="$PAI_DEFAULT_FS_URI/data", outputDir="/srv/files/out"), root)
    assert found == (
        {
            "dataDir": "$PAI_DEFAULT_FS_URI is /srv/files here, as this server's settings say, and "
            'not "/srv/mine"'
        }
        if told
        else {}
    )


def test_data_is_only_told_of_and_may_be_anywhere() -> None:
    config = v1(dataDir="/mnt/data")
    assert variables(config)["PAI_DATA_DIR"] == "/mnt/data"
    assert warnings(config) == {}


@pytest.mark.parametrize(
    "written", ["hdfs://h:9000/a", "hdfs:///srv/files/a", "https://h/a", "file://other/srv/files/a"]
)
def test_what_another_scheme_names_is_told_and_not_fetched(written: str) -> None:
    config = v1(codeDir=written, outputDir=written, dataDir=written)
    told = warnings(config)
    assert list(told) == ["outputDir", "codeDir"]
    assert "not copied" in told["codeDir"]
    assert "not made" in told["outputDir"]
    assert reached(config) == ("", "")
    assert variables(config)["PAI_CODE_DIR"] == written


def test_the_whole_file_system_may_be_the_root() -> None:
    assert reached(v1(codeDir="$PAI_DEFAULT_FS_URI/code"), "/")[0] == "/code"
    assert reached(v1(codeDir="//code"), "/")[0] == "/code"
    assert reached(v1(codeDir="FILE:///code"), "file:///")[0] == "/code"
    assert (
        variables(v1(dataDir="$PAI_DEFAULT_FS_URI"), Setting(default_fs_uri="/"))["PAI_DATA_DIR"]
        == "/"
    )
    with pytest.raises(InvalidConfig, match="codeDir: found"):
        converted(v1(codeDir="/"), Setting(default_fs_uri="/"))


def test_a_path_on_this_machine_is_not_inside_a_root_of_another_scheme() -> None:
    with pytest.raises(InvalidConfig, match="not below hdfs://h/"):
        converted(v1(codeDir="/code"), Setting(default_fs_uri="hdfs://h/"))


def test_a_root_of_another_scheme_is_told_to_the_replicas() -> None:
    config = v1(codeDir="$PAI_DEFAULT_FS_URI/code")
    place = Setting(default_fs_uri="hdfs://h:9000/")
    assert variables(config, place)["PAI_CODE_DIR"] == "hdfs://h:9000/code"
    assert list(warnings(config, place)) == ["outputDir", "codeDir"]
