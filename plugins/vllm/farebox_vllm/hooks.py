"""Hooks: around the methods of one scheduler object, on the object itself, so that taking them off leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .guard import Guard
from .meter import Meter
from .trip import Trip

HOOKED = ("schedule", "update_from_output", "add_request", "_free_request")


class Hooks:
    """Lets a meter watch a scheduler. vLLM's methods get what they were given, and what they give is given on.

    Whatever a hook raises ends in the guard; what vLLM raises goes to vLLM.
    """

    def __init__(self, scheduler: Any, meter: Meter, guard: Guard) -> None:
        self._scheduler = scheduler
        self._meter = meter
        self._guard = guard
        self._set: dict[str, Callable[..., Any]] = {}
        for name in HOOKED:
            around: Callable[[Callable[..., Any]], Callable[..., Any]] = getattr(self, f"_{name.lstrip('_')}")
            self._set[name] = around(getattr(scheduler, name))
            setattr(scheduler, name, self._set[name])

    def remove(self) -> None:
        """Take the hooks off: vLLM runs as if they had never been there. Hooks that others put around them stay."""
        mine = cast("dict[str, Any]", vars(self._scheduler))
        for name, hook in self._set.items():
            if mine.get(name) is hook:
                del mine[name]

    def _schedule(self, original: Callable[..., Any]) -> Callable[..., Any]:
        meter = self._meter

        def schedule(*args: Any, **kwargs: Any) -> Any:
            meter.enter()
            scheduled = original(*args, **kwargs)
            try:
                meter.depart(scheduled)
            except Exception:
                self._fault("schedule")
            return scheduled

        return schedule

    def _update_from_output(self, original: Callable[..., Any]) -> Callable[..., Any]:
        meter = self._meter
        clock = meter.clock

        def update_from_output(*args: Any, **kwargs: Any) -> Any:
            ended_ns = clock()
            trip: Trip | None = None
            try:
                trip = meter.arrived(*_two(args, kwargs))
            except Exception:
                self._fault("update_from_output")
            outputs = original(*args, **kwargs)
            if trip is not None:
                try:
                    meter.told(trip, ended_ns, outputs)
                except Exception:
                    self._fault("update_from_output")
            return outputs

        return update_from_output

    def _add_request(self, original: Callable[..., Any]) -> Callable[..., Any]:
        meter = self._meter

        def add_request(*args: Any, **kwargs: Any) -> Any:
            added = original(*args, **kwargs)
            try:
                meter.arrive(args[0] if args else kwargs["request"])
            except Exception:
                self._fault("add_request")
            return added

        return add_request

    def _free_request(self, original: Callable[..., Any]) -> Callable[..., Any]:
        meter = self._meter

        def free_request(*args: Any, **kwargs: Any) -> Any:
            try:
                meter.left(args[0] if args else kwargs["request"])
            except Exception:
                self._fault("_free_request")
            return original(*args, **kwargs)

        return free_request

    def _fault(self, where: str) -> None:
        try:
            self._guard.fault(where, self._meter.steps)
            if not self._guard.is_off:
                self._meter.recover()
        except Exception:
            self._guard.fault(where, self._meter.steps)


def _two(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    scheduled = args[0] if args else kwargs["scheduler_output"]
    return scheduled, args[1] if len(args) > 1 else kwargs["model_runner_output"]
