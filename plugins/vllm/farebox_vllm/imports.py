"""What to do once a module is imported: vLLM's modules are patched when vLLM loads them, and never loaded for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then(module)` once the module is there: at once, or right after its import."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Waiting(name, then))


class _Waiting(MetaPathFinder):
    """Finds one module as the path does, and has something done after its code has run."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the awaited module; None for any other."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            _also(spec.loader, self._then)
        return spec


def _also(loader: object, then: Callable[[ModuleType], None]) -> None:
    execute: Callable[[ModuleType], None] = getattr(loader, "exec_module")  # noqa: B009 - not every loader has it

    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    setattr(loader, "exec_module", exec_module)  # noqa: B010
