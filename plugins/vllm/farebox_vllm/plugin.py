"""The plugin: what is patched in which of vLLM's processes."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import wraps
from multiprocessing.util import Finalize
from types import ModuleType
from typing import Any

from .imports import when_imported
from .log import LOG
from .middleware import CALLER, Access, TenantMiddleware
from .recorder import start
from .settings import Settings, read_settings
from .tenant import give_tenant

_END_PRIORITY = 100
"""Of the end of a run among multiprocessing's finalizers: before anything that it needs is taken down."""
_registered = False
_closers: dict[int, Callable[[], None]] = {}
"""How to end the recording of a scheduler, by its id()."""


def register() -> None:
    """Called by vLLM in every process, perhaps more than once. Loads nothing, never raises."""
    global _registered  # noqa: PLW0603 - once per process
    if _registered:
        return
    _registered = True
    try:
        settings = read_settings()
    except ValueError as error:
        LOG.warning("farebox: nothing is recorded: %s", error)
        return
    _patch("vllm.v1.core.sched.scheduler", lambda module: _record_schedulers(module.Scheduler, settings))
    _patch("vllm.v1.engine.core", lambda module: _close_early(module.EngineCore))
    _patch("vllm.v1.engine.input_processor", lambda module: _send_tenants(module.InputProcessor))
    _patch("starlette.applications", lambda module: _know_callers(module.Starlette, settings))


def _patch(module: str, patch: Callable[[Any], None]) -> None:
    def guarded(loaded: ModuleType) -> None:
        try:
            patch(loaded)
        except Exception:
            LOG.warning("farebox: %s is not as the plugin knows it", module, exc_info=True)

    when_imported(module, guarded)


def _record_schedulers(scheduler_class: Any, settings: Settings) -> None:
    """EngineCore: every scheduler that is made is recorded."""
    make = scheduler_class.__init__

    @wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
        make(self, *args, **kwargs)
        recorder = start(self, settings)
        if recorder is not None:
            _closers[id(self)] = recorder.close
            atexit.register(recorder.close)
            Finalize(None, recorder.close, exitpriority=_END_PRIORITY)

    scheduler_class.__init__ = __init__


def _close_early(core_class: Any) -> None:
    """EngineCore: the run's end is told before anything is taken down, because vLLM does not wait long for that."""
    end = core_class.shutdown

    @wraps(end)
    def shutdown(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            _closers.pop(id(getattr(self, "scheduler", None)), lambda: None)()
        except Exception:
            LOG.debug("farebox: the end of the run could not be told", exc_info=True)
        return end(self, *args, **kwargs)

    core_class.shutdown = shutdown


def _send_tenants(processor_class: Any) -> None:
    """API server: who asked goes along with every request. Versions before 0.16 have nothing to go along with."""
    assign = processor_class.assign_request_id

    @wraps(assign)
    def assign_request_id(request: Any) -> Any:
        caller = CALLER.get()
        if caller is not None:
            try:
                give_tenant(request, caller.tenant_id, caller.tier)
            except Exception:
                LOG.debug("farebox: a request goes without its tenant", exc_info=True)
        return assign(request)

    processor_class.assign_request_id = staticmethod(assign_request_id)


def _know_callers(application_class: Any, settings: Settings) -> None:
    """API server: every application tells its callers apart before anything else is done for them."""
    call = application_class.__call__
    access = Access(settings)

    @wraps(call)
    async def __call__(self: Any, scope: Any, receive: Any, send: Any) -> None:  # noqa: N807 - it is one
        async def application(*asgi: Any) -> None:
            await call(self, *asgi)

        await TenantMiddleware(application, access)(scope, receive, send)

    application_class.__call__ = __call__
