"""Configs are kept as JSON, which is read and written many times faster than the YAML before."""

from __future__ import annotations

import json

import sqlalchemy as sa
import yaml
from alembic import op

revision = "0005"
down_revision = "0004"

_DOCUMENTS = sa.table("job_documents", sa.column("job_id"), sa.column("kind"), sa.column("text"))
_CONFIGS = _DOCUMENTS.c.kind == "config"


def upgrade() -> None:
    connection = op.get_bind()
    # Which ones first: a long list of long texts need not be in memory at once.
    for job_id in connection.scalars(sa.select(_DOCUMENTS.c.job_id).where(_CONFIGS)).all():
        this = sa.and_(_CONFIGS, _DOCUMENTS.c.job_id == job_id)
        written = connection.scalar(sa.select(_DOCUMENTS.c.text).where(this))
        config = json.dumps(yaml.safe_load(written or ""), ensure_ascii=False)
        connection.execute(sa.update(_DOCUMENTS).where(this).values(text=config))
