"""Makes this folder importable as a package of its own and starts the supervisor.

Going through `regatta` would import the whole project's front door into every replica. This file
is compiled anew at each start, as any script; so it holds nothing.
"""

import sys

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/")[0].rpartition("/")[0])
    from supervisor.life import main  # type: ignore[import-not-found,unused-ignore]

    sys.exit(main(*sys.argv[1:]))
