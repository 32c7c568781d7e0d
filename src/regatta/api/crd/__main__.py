"""Writes the CRD's files into a checkout: `python -m regatta.api.crd [folder]`."""

from __future__ import annotations

import sys
from pathlib import Path

from regatta.api.crd.files import rendered


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for path, text in rendered().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        print(f"{target}: {len(text):,} bytes")


main()
