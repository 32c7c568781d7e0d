"""What the place that takes a config says of itself, and who hands it in."""

from __future__ import annotations

import msgspec

NOBODY = "user"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    #: Who submits the job. Variables name them, and where nobody is known they say `user`.
    user: str = ""
    #: What `$PAI_DEFAULT_FS_URI` stands for: a path, or a `file://` URI. Empty: not configured.
    default_fs_uri: str = ""

    @property
    def owner(self) -> str:
        return self.user or NOBODY
