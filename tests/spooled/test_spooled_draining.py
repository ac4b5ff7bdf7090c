"""Spools into a store: each event once, time adds up, and what is damaged stops nothing."""

import json
from collections import Counter

import pytest
from spooled_telling import MS, START_NS, Collector, Teller, append_lines, spool

from farebox.events import LEDGER, Spooled
from farebox.storage.errors import StoreFullError
from farebox.storage.spool import reader
from farebox.storage.spool.lines import encode, segment_path, segments
from farebox.storage.spool.writer import SpoolWriter


def told_steps(events):
    return [event["step"]["step_seq"] for event in events if "step" in event]


def told_requests(events):
    return sorted(event["request"]["request_id"] for event in events if "request" in event)


def test_a_life_is_recorded_and_its_spool_removed(collector):
    teller = Teller()
    events = [*teller.life(200), teller.end()]
    spool(collector.root / "w", events, segment_bytes=8192)
    assert collector.look(2).state == "up"
    assert [step.step_seq for step in collector.steps()] == told_steps(events)
    assert sorted(one.request_id for one in collector.requests()) == told_requests(events)
    assert collector.ledger().total() == collector.walls() == (teller.now_ns - START_NS) * 2
    assert collector.ledger("account").keys() == {("tenant",), ("idle",)}
    assert not (collector.root / "w").exists() and collector.store.spooled("w") is None


def test_shares_follow_the_step_model_of_gpu_and_model(tmp_path):
    known, unknown = (Collector(tmp_path / name) for name in ("known", "unknown"))
    spool(known.root / "w", Teller().life(3))
    spool(unknown.root / "w", Teller(model="something-else").life(3))
    for one in (known, unknown):
        one.look()
    assert known.store.runs()[0].step_model and all(share.attn > 0 for share in known.shares())
    assert unknown.store.runs()[0].step_model is None and not any(share.attn for share in unknown.shares())
    assert known.ledger().total() == unknown.ledger().total()
    for one in (known, unknown):
        one.store.close()


def test_a_beat_is_idle_time_and_a_lost_process_ends_at_its_last(collector):
    teller = Teller(gpus=1)
    spool(collector.root / "w", [teller.run(), teller.step(), teller.beat(500 * MS)])
    found = collector.look()
    assert collector.ledger("account") == {("tenant",): 20 * MS, ("idle",): 500 * MS}
    [run] = collector.store.runs()
    assert run.ended_ns is None and run.wall_end_ns == START_NS + 520 * MS
    assert found.state == "degraded" and "chat/r1 ended without a word" in found.why


def test_holes_and_losses_are_time_that_nobody_saw(collector):
    teller = Teller(gpus=1)
    events = [teller.run(), teller.step(), teller.step(), teller.step(idle_ns=5 * MS)]
    del events[2]
    events += [teller.beat(10 * MS), {"dropped": 7}, teller.beat(100 * MS), teller.beat(10 * MS), teller.end()]
    spool(collector.root / "w", events)
    collector.look()
    assert collector.ledger("account") == {("tenant",): 40 * MS, ("unobserved",): 120 * MS, ("idle",): 25 * MS}
    assert collector.source.faults["dropped"] == 7


def test_what_is_told_again_changes_nothing_and_what_differs_is_kept_aside(collector):
    teller = Teller()
    events = [*teller.life(40), teller.request(), teller.end()]
    spool(collector.root / "w", events)
    collector.look()
    before = (collector.steps(), collector.requests(), collector.ledger("account", "tenant_id"))
    collector.store.roll()
    other = [json.loads(json.dumps(event)) for event in events]
    next(event for event in other if "step" in event)["cells"][0]["output_tokens"] += 1
    next(event for event in other if "request" in event)["request"]["output_tokens"] = 99
    spool(collector.root / "again", events)
    spool(collector.root / "other", other)
    collector.look()
    assert (collector.steps(), collector.requests(), collector.ledger("account", "tenant_id")) == before
    assert not collector.aside("again") and len(collector.aside("other")) == 2
    assert all("other content" in json.loads(line)["why"] for line in collector.aside("other"))


def test_a_request_told_twice_at_once_is_counted_once(collector):
    teller = Teller()
    one = teller.request()
    spool(collector.root / "w", [teller.run(), one, one, {"request": one["request"] | {"output_tokens": 8}}])
    collector.look()
    assert [(r.request_id, r.output_tokens) for r in collector.requests()] == [("q1", 7)]
    assert len(collector.aside("w")) == 1


@pytest.mark.parametrize(
    "event",
    [
        17,
        {"stop": {}},
        {"run": {"engine_id": "x"}},
        {"step": {"engine_id": "chat"}, "cells": []},
        {"beat": {"engine_id": "chat", "run_id": "nobody", "at_ns": 5}},
        {"beat": {"engine_id": "chat", "run_id": "r1", "at_ns": True}},
        {"usage": {"engine_id": "chat", "tenant_id": "a", "tier": "gold", "at_ns": 1}},
        {"dropped": -1},
        {"request": {"engine_id": "\ud800", "request_id": "x"}},
    ],
)
def test_a_foreign_event_is_kept_aside_and_stops_nothing(collector, event):
    teller = Teller()
    spool(collector.root / "w", [teller.run(), event, teller.step()])
    assert collector.look().state == "degraded"
    assert len(collector.steps()) == 1 and collector.source.faults["refused"] == 1
    assert json.loads(collector.aside("w")[0])["event"] == event


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpus": 3}, "ran on 3 GPUs"),
        ({"started_ns": START_NS + 1}, "before the end"),
        ({"duration_ns": 2**63}, "duration_ns"),
        ({"output_tokens": -1}, "output_tokens"),
    ],
)
def test_a_step_that_would_not_add_up_is_kept_aside(collector, changes, why):
    teller = Teller()
    first, wrong, last = teller.step(), teller.step(), teller.step()
    wrong["step"] |= changes
    spool(collector.root / "w", [teller.run(), first, wrong, last, teller.end()])
    collector.look()
    assert [step.step_seq for step in collector.steps()] == [0, 2]
    assert why in collector.aside("w")[0]
    assert collector.ledger().total() == collector.walls()


def test_damaged_lines_are_counted_and_the_rest_is_recorded(collector):
    teller = Teller()
    append_lines(collector.root, [])
    spool(collector.root / "w", [teller.run(), teller.step(), teller.step()])
    path = segment_path(collector.root / "w", 0)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00" * 300 + lines[1][300:] + lines[2])
    assert "1 damaged lines" in collector.look().why
    assert [step.step_seq for step in collector.steps()] == [1]


@pytest.mark.parametrize("is_written", [True, False])
def test_what_a_hand_wrote_into_a_segment_costs_itself_only(collector, monkeypatch, is_written):
    monkeypatch.setattr(reader, "MOST_BYTES", 4096)
    teller = Teller()
    folder = collector.root / "w"
    rubbish = [b"garbage\n", bytes(range(256)) + b"\n", b'deadbeef {"step":1}\n', b"x" * 10_000 + b"\n", b"\xff\xfe"]
    lines = [encode(event) for event in (teller.run(), teller.step(), teller.step(), teller.step(), teller.step())]
    writer = SpoolWriter(folder)
    told = b"".join(line + junk for line, junk in zip(lines, rubbish, strict=True))
    segment_path(folder, 0).write_bytes(told)
    if not is_written:
        writer.close()
    found = collector.look()
    assert [step.step_seq for step in collector.steps()] == [0, 1, 2, 3]
    assert collector.source.faults["damaged"] == 8 - is_written, "the end of a living writer's line may still come"
    assert found.state == "degraded" and "damaged lines" in found.why
    if is_written:
        writer.close()


def test_a_store_without_room_takes_everything_over_once_there_is_some(collector, monkeypatch):
    teller = Teller()
    events = [*teller.life(50), teller.end()]
    spool(collector.root / "w", events)

    def refuse(*_, **__):
        raise StoreFullError("no room to write it: its disk is full")

    with monkeypatch.context() as full:
        full.setattr(collector.store, "append_all", refuse)
        for _ in range(3):
            found = collector.look()
            assert found.state == "degraded" and "its disk is full" in found.why
    assert not collector.steps() and (collector.root / "w").exists()
    collector.look(2)
    assert [step.step_seq for step in collector.steps()] == told_steps(events)
    assert sorted(one.request_id for one in collector.requests()) == told_requests(events)
    assert collector.ledger().total() == collector.walls()


def test_two_runs_of_one_engine_at_once_are_refused_and_others_go_on(collector):
    one, two, other = Teller(), Teller(run_id="r2", start_ns=START_NS + 10 * MS), Teller("code", "r9")
    spool(collector.root / "a", one.life(20))
    spool(collector.root / "b", [*two.life(5), *other.life(5)])
    collector.look()
    assert Counter(step[:2] for step in collector.steps()) == {("chat", "r1"): 20, ("code", "r9"): 5}
    assert "overlaps" in collector.aside("b")[0]
    assert collector.ledger().total() == collector.walls()


def test_several_runs_share_a_spool(collector):
    tellers = [Teller(f"rank{n}", seed=n) for n in range(4)]
    lives = [teller.life(30) for teller in tellers]
    spool(collector.root / "w", [event for together in zip(*lives, strict=False) for event in together])
    collector.look()
    assert {step.engine_id for step in collector.steps()} == {"rank0", "rank1", "rank2", "rank3"}
    assert collector.ledger().total() == collector.walls()


def test_a_folder_that_cannot_be_read_leaves_the_others_alone(collector, monkeypatch):
    spool(collector.root / "a", Teller("a").life(3))
    spool(collector.root / "b", Teller("b").life(3))
    collector.source._find()
    monkeypatch.setattr(collector.source.drains["a"], "load", lambda: (_ for _ in ()).throw(PermissionError(13, "no")))
    found = collector.look()
    assert found.state == "degraded" and "a: " in found.why
    assert {step.engine_id for step in collector.steps()} == {"b"}


def test_a_writer_of_the_same_name_begins_anew(collector):
    for seed in (1, 2):
        teller = Teller(run_id=f"r{seed}", seed=seed, start_ns=START_NS + seed * 10**12)
        spool(collector.root / "w", [*teller.life(5), teller.end()])
        collector.look()
    assert Counter(step.run_id for step in collector.steps()) == {"r1": 5, "r2": 5}


def test_requests_before_an_unknown_engine_are_counted_with_their_tokens(collector):
    teller = Teller()
    events = [teller.request(run_id="", engine_id=engine) for engine in ("far", "far", "near")]
    spool(collector.root / "proxy-1", [event for event in events if event["request"].pop("run_id") == ""])
    collector.look()
    assert {(run.engine_id, run.run_id, run.gpus) for run in collector.store.runs()} == {
        ("far", "proxy-1", 0), ("near", "proxy-1", 0),
    }  # fmt: skip
    lines = LEDGER.from_arrow(collector.store.read(LEDGER))
    assert sum(line.requests for line in lines) == 3 and sum(line.gpu_ns for line in lines) == 0
    assert (sum(x.prompt_tokens for x in lines), sum(x.cached_tokens for x in lines)) == (90, 30)
    assert sum(line.output_tokens for line in lines) == 21 and {line.model for line in lines} == {"llama-3-8b"}
    spool(collector.root / "proxy-1", events[:1])
    collector.look()
    assert len(collector.requests()) == 3


def test_requests_before_an_engine_that_tells_its_own_are_left_out(collector):
    teller = Teller()
    seen = teller.request()
    del seen["request"]["run_id"]
    spool(collector.root / "a-proxy", [seen])
    spool(collector.root / "engine", [*teller.life(5), teller.request()])
    collector.look()
    assert all(one.run_id == "r1" for one in collector.requests())


def usage(at_ns, tenant="chat", tokens=3):
    return {"usage": {"engine_id": "far", "tenant_id": tenant, "tier": "standard", "at_ns": at_ns,
                      "output_tokens": tokens}}  # fmt: skip


def test_usage_waits_for_the_scraper_and_survives_restarts(tmp_path):
    first = Collector(tmp_path / "s", ["far"])
    append_lines(first.root.parent, [])
    first.root.mkdir(exist_ok=True)
    append_lines(first.root / "w", [usage(n) for n in range(10)])
    first.look()
    queue = first.engines.queues["far"]
    assert [one.at_ns for one in queue.take(4)] == [0, 1, 2, 3]
    first.store.append_all([], queue.used())
    queue.keep()
    assert [one.at_ns for one in queue.take(6)] == [4, 5]
    first.store.close()

    second = Collector(tmp_path / "s", ["far"])
    append_lines(second.root / "w", [usage(10)])
    second.look(2)
    queue = second.engines.queues["far"]
    assert [one.at_ns for one in queue.take(99)] == list(range(4, 11))
    assert (second.root / "w").exists()
    second.store.append_all([], queue.used())
    queue.keep()
    second.look()
    assert not (second.root / "w").exists()
    second.store.close()


def test_usage_that_nobody_takes_does_not_keep_a_spool_for_ever(tmp_path):
    from farebox.collector.spooled.usage_queue import UsageQueue
    from farebox.events import Usage

    queue = UsageQueue("far", most=5)
    for n in range(9):
        queue.offer(Usage("far", "t", "standard", n, 0, 0, 1), Spooled("w", 0, n), Spooled("w", 0, n + 1))
    assert queue.lost == 4 and queue.first_place("w") == Spooled("w", 0, 4)


def test_usage_for_nobody_is_not_kept(collector):
    spool(collector.root / "w", [usage(1)])
    collector.look()
    assert not (collector.root / "w").exists() and collector.source.faults["refused"] == 0


def test_a_living_writers_spool_stays(collector):
    from farebox.storage.spool.writer import SpoolWriter

    collector.root.mkdir()
    writer = SpoolWriter(collector.root / "w", flush_s=0.01, segment_bytes=2000)
    teller = Teller()
    for event in teller.life(30):
        writer.put(event)
    for _ in range(200):
        collector.look()
        if len(collector.steps()) == 30:
            break
    assert len(collector.steps()) == 30 and len(segments(collector.root / "w")) == 1
    writer.close()
    collector.look()
    assert not (collector.root / "w").exists()


def test_writers_of_one_name_in_two_folders_are_two(collector, tmp_path):
    from farebox.collector.spooled.source import SpoolSource

    more = SpoolSource(collector.store, tmp_path / "more", collector.engines)
    for number, root in enumerate((collector.root, tmp_path / "more")):
        root.mkdir()
        append_lines(root / "w", Teller(f"e{number}").life(3))
    for number, root in enumerate((collector.root, tmp_path / "more")):
        collector.look()
        more.look()
        root.mkdir(exist_ok=True)
        append_lines(root / "w", Teller(f"e{number}", "r2", start_ns=START_NS + 10**12).life(3))
    collector.look()
    more.look()
    assert Counter(step[:2] for step in collector.steps()) == {
        (f"e{n}", run): 3 for n in (0, 1) for run in ("r1", "r2")
    }  # fmt: skip
