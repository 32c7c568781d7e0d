"""Jobs on record, for tests: one by one, or thousands that differ in everything a list looks at."""

from __future__ import annotations

import random
from typing import Any

from sqlalchemy import Connection, insert

from regatta.server.records.job_lists import searched
from regatta.server.records.job_tables import jobs, tags
from regatta.server.records.submits import NewJob

NOW = 1_800_000_000_000
USERS = ("ann", "Bob", "böb", "carol_100%", "")
CLUSTERS = ("default", "VC1", "vc_2", "")
STATES = ("WAITING", "RUNNING", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED", "UNKNOWN")
PRIORITIES = ("default", "oppo", "test", "prod")
TAGS = ("nlp", "NLP", "50%", "a_b")
PIECES = ("train", "Train", "100%", "_", "é", "É", "ß", "/", "\\", "'", "日本", "x")


def a_new_job(name: str = "train", username: str = "ann", **changes: Any) -> NewJob:
    job: dict[str, Any] = {
        "id": f"id-{username}-{name}",
        "username": username,
        "name": name,
        "engine": "local",
        "namespace": "default",
        "engine_name": name,
        "submitted_at": NOW,
    }
    return NewJob(**{**job, **changes})


def a_row(number: int, dice: random.Random) -> dict[str, Any]:
    """As `jobs` has it, with its tags."""
    row: dict[str, Any] = {
        "id": f"job-{number:06}",
        "engine": "local",
        "namespace": "default",
        "engine_name": f"j{number}",
        "engine_uid": f"uid-{number}",
        "username": dice.choice(USERS),
        "name": "-".join(dice.choice(PIECES) for _ in range(dice.randint(1, 4))) + f"-{number}",
        "virtual_cluster": dice.choice(CLUSTERS),
        "priority": dice.choice(PRIORITIES),
        "submit_state": "accepted",
        "state": dice.choice(STATES),
        "retries": dice.randrange(3),
        "total_tasks": dice.randrange(4),
        "total_gpus": dice.randrange(3),
        "submitted_at": NOW + dice.randrange(50) * 1000,
        "completed_at": dice.choice((None, NOW + dice.randrange(20) * 1000)),
        "deleted_at": NOW if dice.random() < 0.1 else None,
        "tags": tuple(sorted(dice.sample(TAGS, dice.randrange(3)))),
    }
    row["search"] = searched(row["username"], row["name"], row["virtual_cluster"])
    return row


def store(connection: Connection, rows: list[dict[str, Any]]) -> None:
    plain = [{key: value for key, value in row.items() if key != "tags"} for row in rows]
    connection.execute(insert(jobs), plain)
    tagged = [{"job_id": row["id"], "tag": tag} for row in rows for tag in row.get("tags", ())]
    if tagged:
        connection.execute(insert(tags), tagged)
