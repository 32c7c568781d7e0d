"""What brain and engines say of a job, in its author's names. Pure."""

from __future__ import annotations

import pytest

from regatta.controller.judge import NOT_AGAIN
from regatta.controller.policies.restart import NOT_COUNTED
from regatta.server.openpai.jobs.telling.author_names import AuthorNames, row_told, story_told
from tests.openpai_configs import a_task_role, version_one
from tests.server.openpai.jobs.test_task_answers import a_replica, a_row, a_story

#: `Train.it` with roles of all kinds: one's label is the beginning of another's, and two are the
#: author's own words.
NAMES = AuthorNames(
    engine_name="train-it-4f1c9e",
    name="Train.it",
    roles={"w-x": "w.x", "w": "W", "ps": "ps", "w-x-1": "w_x_1", "b-c": "b-c"},
)
#: A job whose own name its engine uses, and which is the beginning of many words.
PLAIN = AuthorNames(engine_name="a", name="a", roles={"b-c": "b_c", "b": "B"})


@pytest.mark.parametrize(
    ("names", "text", "told"),
    [
        (NAMES, "train-it-4f1c9e-w-x-0 exited with code 7", "w.x[0] exited with code 7"),
        (
            NAMES,
            "created 2 pods: train-it-4f1c9e-w-x-0, train-it-4f1c9e-ps-11",
            "created 2 pods: w.x[0], ps[11]",
        ),
        (NAMES, "train-it-4f1c9e-w-x-1 and train-it-4f1c9e-w-x-1-0", "w.x[1] and w_x_1[0]"),
        (NAMES, "train-it-4f1c9e-b-c-3: ErrImagePull", "b-c[3]: ErrImagePull"),
        (NAMES, "train-it-4f1c9e can never start", "Train.it can never start"),
        (NAMES, "the end of train-it-4f1c9e-w-2.", "the end of W[2]."),
        # Without the job's name: where the author never wrote that of the role.
        (NAMES, "w-x-0: Pulling image", "w.x[0]: Pulling image"),
        (NAMES, "it waits for ps-0", "it waits for ps-0"),
        # Part of something else.
        (NAMES, "Secret train-it-4f1c9e-secrets", "Secret train-it-4f1c9e-secrets"),
        (NAMES, "Secret train-it-4f1c9e-w-x-0-env", "Secret train-it-4f1c9e-w-x-0-env"),
        (NAMES, "/work/train-it-4f1c9e/w-x-0/log", "/work/train-it-4f1c9e/w-x-0/log"),
        (NAMES, "train-it-4f1c9e-w-x-0.user-ann", "train-it-4f1c9e-w-x-0.user-ann"),
        (NAMES, "retrain-it-4f1c9e-w-x-0", "retrain-it-4f1c9e-w-x-0"),
        (NAMES, "train-it-4f1c9e-other-0", "train-it-4f1c9e-other-0"),
        (NAMES, "new-w-x-0 w-x-0x", "new-w-x-0 w-x-0x"),
        # For typing.
        (
            NAMES,
            "`kubectl describe pod train-it-4f1c9e-w-x-0` tells of train-it-4f1c9e-w-x-0",
            "`kubectl describe pod train-it-4f1c9e-w-x-0` tells of w.x[0]",
        ),
        (PLAIN, "a-b-c-0 a-b-0 a-b a", "b_c[0] B[0] a-b a"),
        (PLAIN, "a pod ba-b-c-0 of a.b a-b-c-0-1", "a pod ba-b-c-0 of a.b a-b-c-0-1"),
        # Fields that no config has.
        (
            NAMES,
            f"train-it-4f1c9e-w-x-0 exited; {NOT_AGAIN}",
            "w.x[0] exited; such an end is never retried",
        ),
        (
            NAMES,
            f"starting again, {NOT_COUNTED}",
            "starting again, not counted as one of its retries",
        ),
        (NAMES, "", ""),
    ],
)
def test_a_text_has_the_authors_names_and_nothing_else_of_it_changes(
    names: AuthorNames, text: str, told: str
) -> None:
    assert names.told(text) == told


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("train-it-4f1c9e-w-x-0 exited with code 7; starting again", ("w-x", 0)),
        ("created 1 pod: train-it-4f1c9e-ps-3", ("ps", 3)),
        ("train-it-4f1c9e-ps-3: lost, as train-it-4f1c9e-ps-3 was before", ("ps", 3)),
        ("ps-2: Pulling image", ("ps", 2)),
        ("created 2 pods: train-it-4f1c9e-w-x-0, train-it-4f1c9e-ps-0", None),
        ("ps-2: train-it-4f1c9e-ps-3 is gone", None),
        ("all replicas run", None),
        ("it waits for ps-0", None),
        ("train-it-4f1c9e was stopped", None),
    ],
)
def test_a_text_is_about_a_task_where_it_names_one_alone(
    text: str, task: tuple[str, int] | None
) -> None:
    assert NAMES.task_of(text) == task


def test_of_a_config_all_that_is_told_is_in_its_authors_names() -> None:
    said = "j-ps-server-1 was lost"
    row = a_row(engine_name="j", name="j", protocol=1, message=said, trigger_message=said)
    text = version_one("j", a_task_role("ps_server", "true", 2))
    story = story_told(a_story(text, row, a_replica("ps-server", message=said)))
    told = "ps_server[1] was lost"
    assert (story.row.message, story.row.trigger_message) == (told, told)
    assert story.replicas[0].message == told


def test_a_paddlejobs_author_gave_the_engine_its_names() -> None:
    row = a_row(engine_name="j", name="j", protocol=0, message="j-ps-server-1 was lost")
    assert row_told(row, {"ps-server": "other"}) is row
