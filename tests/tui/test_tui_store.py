"""The feed on a real store: the same figures as from lists, while it grows, and when it vanishes."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from farebox.errors import FareboxError
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress
from farebox.storage.errors import StoreError
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store
from farebox.tui.archived import fold_apart, fold_archived
from farebox.tui.feed import Feed

POLL = """
import sys
from farebox.storage.live import LiveReader
from farebox.tui.feed import Feed
print(Feed(LiveReader(sys.argv[1])).poll().steps, "pyarrow" in sys.modules)
"""


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
    return Feed(reader, wall_ns=lambda: 0, steady_ns=lambda: 0, fold_archived=fold_archived)


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


@pytest.mark.parametrize("parts", [1, 3])
def test_a_run_at_full_speed_gives_the_figures_of_the_lists(tmp_path, make, parts):
    told = make.ladder(120)
    run = told.run_list[0]._replace(ended_ns=told.step_list[-1].ended_ns, heartbeat_ns=told.step_list[-1].ended_ns)
    told.run_list[0] = run
    reader = None
    with create_store(tmp_path / "store") as store:
        store.put_rate(told.rate_list[0])
        with store.archiving(run.engine_id, run.run_id) as stream:
            for part in range(parts):
                first, last = part * 120 // parts, (part + 1) * 120 // parts
                so_far = run._replace(heartbeat_ns=told.step_list[last - 1].ended_ns, ended_ns=None)
                stream.append(batch(told, so_far if last < 120 else run, first, last))
                stream.commit()
                if reader is None:
                    reader = LiveReader(tmp_path / "store")
                    feed = still(reader)
                assert feed.poll().steps == (120 if last == 120 else 120 // parts)
        assert feed.poll() == still(told).poll()
        assert still(reader).poll() == still(told).poll()
    reader.close()


def test_a_run_that_goes_on_at_full_speed_is_told_whole(tmp_path, make):
    told = make.ladder(120)
    run = told.run_list[0]._replace(ended_ns=told.step_list[-1].ended_ns, heartbeat_ns=told.step_list[-1].ended_ns)
    half = run._replace(heartbeat_ns=told.step_list[59].ended_ns, ended_ns=None)
    told.run_list[0] = run
    with create_store(tmp_path / "store") as store, LiveReader(tmp_path / "store") as reader:
        store.put_rate(told.rate_list[0])
        store.append(batch(told, half, 0, 60))
        feed = still(reader)
        feed.poll()
        with store.archiving(run.engine_id, run.run_id) as stream:
            stream.append(batch(told, run, 60, 120))
        assert feed.poll() == still(told).poll()
        assert still(reader).poll() == still(told).poll()


def test_the_archive_is_read_without_loading_arrow_here(tmp_path, make):
    told = make.ladder(120)
    run = told.run_list[0]._replace(ended_ns=told.step_list[-1].ended_ns, heartbeat_ns=told.step_list[-1].ended_ns)
    with create_store(tmp_path) as store, store.archiving(run.engine_id, run.run_id) as stream:
        stream.append(batch(told, run, 0, 120))
    done = subprocess.run([sys.executable, "-c", POLL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "120 False\n"
    with pytest.raises(FareboxError, match="no store at"):
        fold_apart(tmp_path / "elsewhere", run, 0)


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
