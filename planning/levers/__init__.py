"""Levers: what could be changed, as far as the recorded traffic allows it."""

from .candidate import Candidate
from .catalogue import candidates_of

__all__ = ["Candidate", "candidates_of"]
