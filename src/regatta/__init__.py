"""Regatta runs distributed training jobs: one job file, this machine or a cluster."""

from regatta.progress import progress

__version__ = "0.1.0"
__all__ = ["__version__", "progress"]
