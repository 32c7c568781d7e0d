"""Whose engine a route speaks to: one for everybody, or each caller's own view of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request

from regatta.engines.base import Engine


def serve_engine(app: FastAPI, engine_of: Callable[[Request], Engine]) -> None:
    app.state.engine_of = engine_of


def _engine_of(request: Request) -> Engine:
    engine: Engine = request.app.state.engine_of(request)
    return engine


AskedEngine = Annotated[Engine, Depends(_engine_of)]
