"""Farebox: who rides the GPU, what the empty seats cost, and who pays.

import farebox

with farebox.open_store("mystore") as store:
    store.ledger("2026-11-01", "2026-12-01", tenant="voice").df()
    store.query("SELECT tenant_id, sum(gpu_ns) FROM ledger GROUP BY 1").df()
"""

from typing import TYPE_CHECKING, Any

from .errors import FareboxError, InputError
from .version import __version__

if TYPE_CHECKING:
    from .storage.answer import Answer
    from .storage.reading import StoreReader, open_store

__all__ = ["Answer", "FareboxError", "InputError", "StoreReader", "__version__", "open_store"]
_LAZY = {"Answer": ".storage.answer", "StoreReader": ".storage.reading", "open_store": ".storage.reading"}


def __getattr__(name: str) -> Any:
    """Load what reads stores when it is used: `import farebox` stays light."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
