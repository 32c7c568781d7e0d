"""`python -m regatta.server`: the server's process, as its guardian starts it."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    # Nothing that is imported is garbage, and looking for some takes longer than many a module.
    gc.disable()
    from regatta.server.run import main as run

    gc.freeze()
    gc.enable()
    return run()


if __name__ == "__main__":
    sys.exit(main())
