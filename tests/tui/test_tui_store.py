"""The feed on a real store: the same figures as from lists, while it grows, and when it vanishes."""

from __future__ import annotations

import shutil

import pytest

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress
from farebox.storage.errors import StoreError
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store
from farebox.tui.feed import Feed


def batch(told, run, first, last):
    """Steps `first` to `last` of a fake store as a batch."""
    return Batch(
        run,
        STEPS.to_arrow(told.step_list[first:last]),
        SHARES.to_arrow([s for s in told.share_list if first <= s.step_seq < last]),
        REQUESTS.to_arrow(told.request_list if first == 0 else []),
        LEDGER.to_arrow([]),
        Progress(last, len(told.request_list), run.heartbeat_ns),
    )


def still(reader):
    return Feed(reader, wall_ns=lambda: 0, steady_ns=lambda: 0)


def test_a_growing_store_gives_the_figures_of_the_lists(tmp_path, make):
    told = make.ladder(120)
    half = told.run_list[0]._replace(heartbeat_ns=told.step_list[59].ended_ns)
    with create_store(tmp_path / "store") as store:
        store.put_rate(told.rate_list[0])
        store.append(batch(told, half, 0, 60))
        reader = LiveReader(tmp_path / "store")
        feed = still(reader)
        assert feed.poll().steps == 60
        store.append(batch(told, told.run_list[0], 60, 120))
        assert feed.poll() == still(told).poll()
        reader.close()


def test_a_store_that_vanishes_is_an_error_in_words(tmp_path, make):
    told = make.ladder(120)
    with create_store(tmp_path / "store") as store:
        store.append(batch(told, told.run_list[0], 0, 120))
    reader = LiveReader(tmp_path / "store")
    feed = still(reader)
    feed.poll()
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(StoreError):
        feed.poll()
    reader.close()
