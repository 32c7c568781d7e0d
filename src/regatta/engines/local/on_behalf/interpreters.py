"""Which interpreter of this machine stands for `python` in an image, as a server's settings say."""

from __future__ import annotations

from collections.abc import Mapping

#: Of any image that is not named.
ANY = "*"


def interpreter_for(images: Mapping[str, str], image: str) -> str | None:
    """By the image's whole name; else by its name without the tag, which stands for every tag of
    it; else by `*`."""
    bare = image.partition("@")[0]
    name, colon, tag = bare.rpartition(":")
    without_tag = name if colon and "/" not in tag else bare
    for key in (image, bare, without_tag, ANY):
        if key and key in images:
            return images[key]
    return None
