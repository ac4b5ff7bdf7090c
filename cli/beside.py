"""A process beside the one that shows: it records, and is ended with it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ..without_pandas import do_without_pandas


@contextmanager
def beside(work: Callable[..., None], *args: Any, **kwargs: Any) -> Generator[None]:
    """Have a process of its own do the work meanwhile; it is terminated in the end."""
    from multiprocessing import get_context

    process = get_context("spawn").Process(target=_work, args=(work, args, kwargs))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _work(work: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    do_without_pandas()
    work(*args, **kwargs)
