"""Which interpreter stands for an image's."""

from __future__ import annotations

import pytest

from regatta.engines.local.on_behalf.interpreters import interpreter_for

IMAGES = {
    "paddle:2.6.2": "/by-tag",
    "paddle": "/by-name",
    "registry:5000/team/train": "/by-registry",
    "pinned@sha256:abc": "/by-digest",
}


@pytest.mark.parametrize(
    ("image", "interpreter"),
    [
        ("paddle:2.6.2", "/by-tag"),
        ("paddle:2.5", "/by-name"),
        ("paddle", "/by-name"),
        ("paddle:2.6.2@sha256:def", "/by-tag"),
        ("registry:5000/team/train", "/by-registry"),
        ("registry:5000/team/train:1", "/by-registry"),
        ("registry:5000/team/other", None),
        ("pinned@sha256:abc", "/by-digest"),
        ("pinned", None),
        ("", None),
    ],
)
def test_the_closest_name_is_meant(image: str, interpreter: str | None) -> None:
    assert interpreter_for(IMAGES, image) == interpreter
    anything = interpreter_for({**IMAGES, "*": "/any"}, image)
    assert anything == (interpreter or "/any")
