"""`import regatta` as a training program of a job sees it: `regatta.progress(...)`.

The training environment has its own Python (3.8 and up) and none of our dependencies. Where the
whole package is installed there too, this folder still comes first on the path; everything but
`progress` is then looked up in that package.
"""

import os as _os
import sys as _sys

from .progress import progress

__all__ = ["progress"]

_here = _os.path.dirname(_os.path.abspath(__file__))
_installed = [
    _folder
    for _folder in (_os.path.join(_entry or ".", "regatta") for _entry in _sys.path)
    if _os.path.isfile(_os.path.join(_folder, "__init__.py"))
    and not _os.path.samefile(_folder, _here)
]
__path__ = [_here, *_installed[:1]]


def __getattr__(name: str) -> object:
    """What only the whole package has: run its front door in a module of its own, then ask it."""
    if not _installed or (name.startswith("__") and name != "__version__"):
        raise AttributeError(f"module 'regatta' has no attribute {name!r} here")
    import importlib.util

    whole = _sys.modules.get("_regatta_whole")
    if whole is None:
        front_door = _os.path.join(_installed[0], "__init__.py")
        spec = importlib.util.spec_from_file_location("_regatta_whole", front_door)
        assert spec is not None
        assert spec.loader is not None
        whole = importlib.util.module_from_spec(spec)
        _sys.modules["_regatta_whole"] = whole
        spec.loader.exec_module(whole)
    found: object = getattr(whole, name)
    return found
