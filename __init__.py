"""Farebox: who rides the GPU, what the empty seats cost, and who pays."""

from .version import __version__

__all__ = ["__version__"]
