"""What a job brings for its own processes alone: never a part of it, so never stored, shown or told
with it. An engine hands it to replicas in its own way and lets go of it when the job ends."""

from __future__ import annotations

import msgspec

#: How a secret is shown where something has to be.
MASK = "******"
#: Kubernetes' word for what is for nobody in particular.
OPAQUE = "Opaque"


class JobSecret(msgspec.Struct, frozen=True, kw_only=True):
    """As a Kubernetes Secret: templates refer to it by its name and a key."""

    name: str
    data: dict[str, str]
    #: What it is for; one that images are pulled with has another.
    type: str = OPAQUE

    def __repr__(self) -> str:
        return f"JobSecret({self.name!r}, {len(self.data)} keys)"
