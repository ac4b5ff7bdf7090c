"""A process without pandas: pyarrow and DuckDB import it where it is installed, at every start, for a third of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class WithoutPandas:
    """Finds no pandas. Commands hand rows on as Arrow; only `farebox.open_store(…).….df()` is for pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Nothing to say of other modules; ModuleNotFoundError for pandas, as where it is not installed."""
        if name == "pandas":
            raise ModuleNotFoundError("farebox's commands do without pandas", name=name)
        return None


def do_without_pandas() -> None:
    """Import no pandas in this process from here on, whoever asks."""
    sys.meta_path.insert(0, WithoutPandas())
