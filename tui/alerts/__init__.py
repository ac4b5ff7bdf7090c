"""Alerts: what needs attention, derived from a snapshot and what it was made of."""

from .rules import alerts_of
from .watch import Watch

__all__ = ["Watch", "alerts_of"]
