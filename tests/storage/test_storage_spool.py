"""Spools: writers never wait, readers get every event once, and a torn line costs that line only."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.events import STEPS, Spooled
from farebox.storage.spool.lines import decode, encode, segment_path, segments
from farebox.storage.spool.reader import SpoolReader, spools
from farebox.storage.spool.writer import SpoolWriter
from farebox.storage.store import create_store

WRITE_FOR_EVER = """
import itertools, sys, time
from pathlib import Path
from farebox.storage.spool.writer import SpoolWriter
writer = SpoolWriter(Path(sys.argv[1]), flush_s=0.01, segment_bytes=4096)
for number in itertools.count():
    writer.put([number, time.time()])
    if not number % 50:
        time.sleep(0.002)
        print(number, flush=True)
"""
LIGHT = "import sys, farebox.storage.spool.writer; print(sorted({n.partition('.')[0] for n in sys.modules}))"


def write(folder: Path, values, **options):
    writer = SpoolWriter(folder, flush_s=60, **options)
    for value in values:
        writer.put(value)
    writer.close()
    return writer


def values(reader: SpoolReader):
    return [event.value for event in reader.read()]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4), max_leaves=9))
def test_a_line_is_read_as_it_was_written(value):
    line = encode(value)
    assert line.count(b"\n") == 1 and decode(line) == value


@pytest.mark.parametrize("segments_in_cap", [1, 2, 3])
def test_a_small_cap_holds_up_nobody_for_good(tmp_path, segments_in_cap):
    writer = SpoolWriter(tmp_path / "w", flush_s=0.005, segment_bytes=400, cap_bytes=400 * segments_in_cap)
    reader, told = SpoolReader(tmp_path / "w"), []
    deadline = time.monotonic() + 20
    for number in range(300):
        writer.put(["support", number])
    while len(told) < 300 and time.monotonic() < deadline:
        told += values(reader)
        reader.remove_before(reader.place)
        time.sleep(0.002)
    writer.close()
    assert told == [["support", number] for number in range(300)]


@pytest.mark.parametrize("cut", [0, 5, 12, -2])
def test_a_changed_line_is_noticed(cut):
    line = bytearray(encode(["support", 41]))
    line[cut] ^= 1
    with pytest.raises(ValueError):
        decode(bytes(line))


def test_events_are_read_in_order_over_many_segments(tmp_path):
    write(tmp_path / "w", range(1000), segment_bytes=300)
    assert len(segments(tmp_path / "w")) > 10
    reader = SpoolReader(tmp_path / "w")
    assert values(reader) == list(range(1000)) and values(reader) == []


def test_reading_goes_on_at_a_place(tmp_path):
    write(tmp_path / "w", range(100), segment_bytes=200)
    half = [event.place for event in SpoolReader(tmp_path / "w").read(limit=41)][-1]
    assert values(SpoolReader(tmp_path / "w", half)) == list(range(41, 100))


def test_a_new_writer_begins_a_new_segment(tmp_path):
    write(tmp_path / "w", [1])
    write(tmp_path / "w", [2])
    assert segments(tmp_path / "w") == [0, 1] and values(SpoolReader(tmp_path / "w")) == [1, 2]


def test_a_damaged_line_costs_that_line_only(tmp_path):
    write(tmp_path / "w", range(10))
    path = segment_path(tmp_path / "w", 0)
    data = path.read_bytes()
    path.write_bytes(data[:15] + b"?" + data[16:])
    reader = SpoolReader(tmp_path / "w")
    assert values(reader) == [0, *range(2, 10)] and reader.damaged == 1


def test_a_torn_end_waits_for_a_living_writer_and_is_dropped_of_a_dead_one(tmp_path):
    writer = SpoolWriter(tmp_path / "w", flush_s=0.01)
    writer.put("whole")
    reader = SpoolReader(tmp_path / "w")
    assert _until(lambda: values(reader)) == ["whole"]
    path = segment_path(tmp_path / "w", 0)
    with path.open("ab") as file:
        file.write(encode("torn")[:-3])
    assert values(reader) == [] and reader.damaged == 0
    writer.close()
    assert values(reader) == [] and reader.damaged == 1


def test_what_is_recorded_is_removed_and_nothing_else(tmp_path):
    write(tmp_path / "w", range(100), segment_bytes=200)
    reader = SpoolReader(tmp_path / "w")
    half = [event.place for event in reader.read(limit=41)][-1]
    reader.remove_before(half)
    assert min(segments(tmp_path / "w")) == half.segment
    assert values(SpoolReader(tmp_path / "w", half)) == list(range(41, 100))
    list(reader.read())
    reader.remove_before(reader.place)
    assert spools(tmp_path) == []


def test_a_segment_that_a_writer_had_just_begun_when_it_died_is_no_rest(tmp_path):
    write(tmp_path / "w", [{"n": 1}])
    last = segments(tmp_path / "w")[-1]
    segment_path(tmp_path / "w", last + 1).touch()
    reader = SpoolReader(tmp_path / "w")
    assert not reader.is_at_end
    assert values(reader) == [{"n": 1}]
    assert reader.is_at_end
    reader.remove_before(reader.place)
    assert not (tmp_path / "w").exists()


def test_a_living_writers_newest_segment_stays(tmp_path):
    writer = SpoolWriter(tmp_path / "w", flush_s=0.01)
    writer.put(1)
    reader = SpoolReader(tmp_path / "w")
    assert _until(lambda: values(reader)) == [1]
    reader.remove_before(reader.place)
    writer.put(2)
    assert _until(lambda: values(reader)) == [2]
    writer.close()


def test_a_folder_has_one_writer(tmp_path):
    writer = SpoolWriter(tmp_path / "w")
    with pytest.raises(BlockingIOError):
        SpoolWriter(tmp_path / "w")
    writer.close()


def test_beyond_the_cap_the_oldest_are_dropped_and_the_loss_is_told(tmp_path):
    writer = SpoolWriter(tmp_path / "w", flush_s=0.01, segment_bytes=200, cap_bytes=600, memory_events=10)
    for number in range(200):
        writer.put(number)
    _until(lambda: writer.dropped)
    kept = values(reader := SpoolReader(tmp_path / "w"))
    reader.remove_before(reader.place)
    found = _until(lambda: values(reader))
    writer.close()
    told = found + values(reader)
    dropped = sum(value["dropped"] for value in kept + told if isinstance(value, dict))
    numbers = [value for value in kept + told if not isinstance(value, dict)]
    assert dropped == writer.dropped > 0
    assert len(numbers) + dropped == 200 and numbers == sorted(set(numbers))


def test_an_event_that_is_no_json_is_counted_and_stops_nothing(tmp_path):
    writer = write(tmp_path / "w", [1, object(), 2])
    assert writer.dropped == 1 and sorted(values(SpoolReader(tmp_path / "w")), key=str) == [1, 2, {"dropped": 1}]


def test_a_full_disk_keeps_events_in_memory_until_there_is_room(tmp_path, monkeypatch):
    real, full = os.write, [True]

    def fill(descriptor, data):
        if full[0] and data[8:9] == b" ":
            return real(descriptor, data[:4])
        return real(descriptor, data)

    monkeypatch.setattr("farebox.storage.spool.writer.os.write", fill)
    writer = SpoolWriter(tmp_path / "w", flush_s=0.01)
    writer.put("kept")
    time.sleep(0.1)
    reader = SpoolReader(tmp_path / "w")
    assert values(reader) == []
    full[0] = False
    assert _until(lambda: values(reader)) == ["kept"] and reader.damaged == 0
    writer.close()


def test_a_killed_writer_leaves_a_gapless_beginning(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path / "w")], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        while int(child.stdout.readline()) < 2000:
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
    reader = SpoolReader(tmp_path / "w")
    numbers = [number for number, _ in values(reader)]
    assert numbers == list(range(len(numbers))) and len(numbers) > 1000 and reader.damaged <= 1


def test_writing_needs_the_standard_library_only():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, cwd="/")
    names = set(json.loads(done.stdout.replace("'", '"')))
    assert names - set(sys.stdlib_module_names) <= {"farebox", "__main__", "_distutils_hack", "distutils-precedence"}


def test_a_place_moves_with_the_batch_or_not_at_all(tmp_path, server):
    run, place = server(), Spooled("w", 3, 250)
    with create_store(tmp_path / "s") as store:
        assert store.spooled("w") is None
        batch = run.batch(5)
        store.append_all([batch], [place])
        assert store.spooled("w") == place
        with pytest.raises(Exception, match="already recorded"):
            store.append_all([batch], [Spooled("w", 9, 9)])
        assert store.spooled("w") == place and store.read(STEPS).num_rows == 5
        store.append_all([run.batch(5)], [Spooled("w", 4, 0)])
        assert store.spooled("w") == Spooled("w", 4, 0)
        store.append_all([], [Spooled("other", 0, 7)])
        assert store.spooled("other") == Spooled("other", 0, 7)


def _until(found, timeout_s=10.0):
    """What `found` answers once it is something."""
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return answer
