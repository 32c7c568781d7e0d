"""`regatta.progress`, for programs that run where the whole package is installed.

The code lives in the folder that training programs get on their PYTHONPATH, and only there.
"""

from regatta._inject.regatta.progress import progress

__all__ = ["progress"]
