"""Which interpreter of this machine `python` is: the one that somebody named, the one that a
server's settings name for the image, or the first on PATH."""

from __future__ import annotations

import os
from collections.abc import Mapping

from regatta.engines.local.on_behalf.looking import Looking

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


class Interpreters:
    def __init__(
        self,
        directory: str,
        named: str | None,
        images: Mapping[str, str] | None,
        looking: Looking,
    ) -> None:
        """`named`: whatever the image is, unless `images` says more."""
        self._directory, self._named, self._images = directory, named, images
        self._looking = looking

    def folder_of(self, image: str) -> str:
        """Of the interpreter that is named by its path; empty: none is."""
        named = self._named_for(image)
        return os.path.dirname(self._path(named)) if named and "/" in named else ""

    def choose(self, wanted: str, image: str, search: str) -> str:
        """The job's interpreter: the one named, else the shell's, under either of its names."""
        named, find = self._named_for(image), self._looking.find
        if named:
            return self._path(named) if "/" in named else find(named, search) or named
        other = "python3" if wanted == "python" else "python"
        return find(wanted, search) or find(other, search) or wanted

    def _named_for(self, image: str) -> str | None:
        found = interpreter_for(self._images, image) if self._images is not None else None
        return found or self._named

    def _path(self, python: str) -> str:
        return os.path.join(self._directory, os.path.expanduser(python))
