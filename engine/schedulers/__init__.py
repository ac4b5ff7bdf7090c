"""Schedulers: who rides the next step. Each file reads as its algorithm."""

from ..config import EngineConfig, Mode
from ..riders import Riders
from ..waiting import WaitingQueue
from .continuous import ContinuousScheduler
from .none import NoBatchScheduler
from .scheduler import Schedule, Scheduler
from .static import StaticScheduler

_SCHEDULERS: dict[Mode, type[Scheduler]] = {
    "continuous": ContinuousScheduler,
    "static": StaticScheduler,
    "none": NoBatchScheduler,
}


def scheduler_for(config: EngineConfig, waiting: WaitingQueue, riders: Riders) -> Scheduler:
    """The scheduler of an engine's mode."""
    return _SCHEDULERS[config.mode](config, waiting, riders)


__all__ = ["Schedule", "Scheduler", "scheduler_for"]
