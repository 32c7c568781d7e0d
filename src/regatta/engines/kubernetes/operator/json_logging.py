"""Log lines as JSON, one object each, naming the job that they are about.

log.info("created", extra={"job": "default/mnist"})
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import IO

import msgspec


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name.removeprefix("regatta.engines.kubernetes."),
            "message": record.getMessage(),
        }
        job = getattr(record, "job", None)
        if job:
            line["job"] = job
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_as_json(level: str, stream: IO[str] | None = None) -> None:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
