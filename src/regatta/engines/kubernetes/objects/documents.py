"""A PaddleJob as it stands in the cluster: its text, and who it is."""

from __future__ import annotations

import msgspec

from regatta.engines.kubernetes.api.models import Metadata


class JobDocument(msgspec.Struct, frozen=True, gc=False):
    """Perhaps not a valid job: reading it as one, and saying what is wrong with it, is not done
    here."""

    metadata: Metadata
    spec: bytes
    status: bytes

    @classmethod
    def from_json(cls, text: msgspec.Raw | bytes) -> JobDocument:
        # Not the whole text: who wrote which field takes as much room as all else.
        whole = _decode(text)
        return cls(whole.metadata, bytes(whole.spec), bytes(whole.status))


class _Whole(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_decode = msgspec.json.Decoder(_Whole).decode
