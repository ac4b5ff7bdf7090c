"""Fleets at work: routing, starting ahead, draining, and that nothing is lost or counted twice."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.engine.engine import Engine
from farebox.engine.fleet import Endpoint, Fleet, Hours, Route, replay_fleet
from farebox.engine.pace import Pace
from farebox.engine.replay import replay

SETTINGS = tries(15)
SECOND = 10**9
MINUTE = 60 * SECOND


class Tapes(dict):
    """A tape for each run, by engine and run."""

    def __init__(self, tape) -> None:
        super().__init__()
        self._tape = tape

    def open(self, config):
        return self.setdefault((config.engine_id, config.run_id), self._tape())

    def of(self, engine_id: str) -> list:
        return sorted((t for (e, _), t in self.items() if e == engine_id), key=lambda tape: tape.runs[0].started_ns)

    @property
    def requests(self):
        return [request for tape in self.values() for request in tape.requests]

    @property
    def lasts(self):
        return [tape.runs[-1] for tape in self.values()]


@pytest.fixture
def serve(kit):
    def call(fleet: Fleet, arrivals, **options) -> Tapes:
        tapes = Tapes(kit.tape)
        replay_fleet(fleet, arrivals, tapes.open, **options)
        return tapes

    return call


@pytest.fixture
def endpoint(kit):
    def make(name: str = "a", load_s: float = 0, **options) -> Endpoint:
        engine = options.pop("engine", None) or kit.config()
        return Endpoint(name=name, engine=replace(engine, host=name), load_ns=int(load_s * SECOND), **options)

    return make


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@SETTINGS
@given(data=st.data())
def test_two_endpoints_are_two_runs_with_the_traffic_split_by_hand(kit, some_workloads, some_configs, data):
    arrivals = data.draw(some_workloads())
    engines = {name: replace(data.draw(some_configs()), host=name) for name in ("left", "right")}
    fleet = Fleet(
        tuple(Endpoint(name=name, engine=engine, load_ns=0) for name, engine in engines.items()),
        (Route("right", tenant="a"),),
    )
    tapes = Tapes(kit.tape)
    replay_fleet(fleet, arrivals, tapes.open)
    for name, engine in engines.items():
        (tape,) = tapes.of(f"{name}-0")
        alone, run = kit.tape(), tape.runs[0]
        mine = [a for a in arrivals if (a.tenant_id == "a") == (name == "right")]
        config = replace(engine, engine_id=run.engine_id, run_id=run.run_id)
        replay(Engine(config, alone, arrivals[0].arrived_ns), mine)
        assert tape.events == alone.events
        assert tape.runs[0] == alone.runs[0]
    ends = {run.ended_ns for run in tapes.lasts}
    told = [s.started_ns + s.duration_ns for t in tapes.values() for s in t.steps]
    told += [r.finished_ns for r in tapes.requests]
    assert ends == {max(told)}


@SETTINGS
@given(data=st.data())
def test_a_fleet_of_one_replica_is_that_engine(kit, some_workloads, some_configs, data):
    config, arrivals = data.draw(some_configs()), data.draw(some_workloads())
    tapes = Tapes(kit.tape)
    replay_fleet(Fleet((Endpoint(name="a", engine=config, load_ns=0),)), arrivals, tapes.open)
    (tape,) = tapes.values()
    alone = kit.serve(replace(config, engine_id="a-0", run_id=tape.runs[0].run_id), arrivals)
    assert tape.events == alone.events
    assert (tape.runs[0], tape.runs[-1]) == (alone.runs[0], alone.runs[-1])


@st.composite
def fleets(draw, kit, some_configs) -> Fleet:
    """Endpoints that are up in some minutes of a day, or until some instant."""
    endpoints = []
    for name in ("x", "y"):
        opens = draw(st.integers(0, 3))
        hours = Hours(((_minute(kit) + opens, _minute(kit) + opens + draw(st.integers(1, 3))),), tuple(range(7)), "UTC")
        replicas = draw(st.integers(1, 3))
        endpoints.append(
            Endpoint(
                name=name,
                engine=replace(draw(some_configs()), host=name),
                load_ns=draw(st.sampled_from([0, 1, SECOND // 10, 90 * SECOND])),
                replicas=replicas,
                min_replicas=draw(st.integers(0, replicas)),
                hours=draw(st.sampled_from([None, hours])),
                until_ns=draw(st.sampled_from([None, kit.start_ns + SECOND // 20, kit.start_ns + 400 * SECOND])),
            )
        )
    return Fleet(tuple(endpoints), (Route("y", prompt_tokens=(60, None)),))


def _minute(kit) -> int:
    return kit.start_ns // MINUTE % 1440


@SETTINGS
@given(data=st.data())
def test_every_request_ends_once_and_no_engine_does_two_things_at_once(kit, some_workloads, some_configs, data):
    fleet, arrivals = data.draw(fleets(kit, some_configs)), data.draw(some_workloads())
    spread = data.draw(st.sampled_from([1, 40, 700]))
    arrivals = [
        a._replace(arrived_ns=kit.start_ns + (a.arrived_ns - kit.start_ns) * spread, abort_ns=None) for a in arrivals
    ]
    tapes = Tapes(kit.tape)
    replay_fleet(fleet, arrivals, tapes.open)
    assert Counter(r.request_id for r in tapes.requests) == Counter(a.request_id for a in arrivals)
    assert sum(r.output_tokens for r in tapes.requests if r.finish_reason != "rejected") == sum(
        s.output_tokens for tape in tapes.values() for s in tape.steps
    )
    for engine_id in {engine for engine, _ in tapes}:
        for before, after in pairwise(tape.runs[-1] for tape in tapes.of(engine_id)):
            assert before.ended_ns <= after.started_ns or after.started_ns == after.ended_ns
    for tape in tapes.values():
        run = tape.runs[-1]
        loaded_ns = run.started_ns + run.load_ns
        assert all(loaded_ns <= s.started_ns and s.started_ns + s.duration_ns <= run.ended_ns for s in tape.steps)
        gaps = sum(step.idle_before_ns + step.duration_ns for step in tape.steps)
        assert run.load_ns + gaps <= run.ended_ns - run.started_ns or run.ended_ns == run.started_ns
    again = Tapes(kit.tape)
    replay_fleet(fleet, arrivals, again.open)
    assert {key: tape.events for key, tape in again.items()} == {key: tape.events for key, tape in tapes.items()}


def test_the_least_loaded_replica_takes_a_request_and_the_first_of_equals(kit, serve, endpoint):
    """4 · waiting + running. At replica 0 one rides whose prompt fills the cache, so a second one waits: 4 + 1."""
    two = endpoint(engine=kit.config(kv_blocks=90, max_num_batched_tokens=2000), replicas=2)
    sizes = [1000, 20, 1000, 20, 20, 20, 20, 20]
    arrivals = [kit.arrival(n, at_ms=100 * n, prompt=size, output=200) for n, size in enumerate(sizes)]
    tapes = serve(Fleet((two,)), arrivals)
    assert {r.request_id for r in tapes.of("a-0")[0].requests} == {"a-0", "a-2", "a-7"}  # the last: 5 against 5


def test_a_load_is_that_of_the_arrivals_instant(kit, serve, endpoint):
    """The first is in its only step, which ends later: it rides at replica 0, so the second goes to replica 1."""
    tapes = serve(Fleet((endpoint(replicas=2),)), [kit.arrival(0, output=1), kit.arrival(1, at_ms=1, output=1)])
    assert [len(tapes.of(f"a-{n}")[0].requests) for n in (0, 1)] == [1, 1]


def test_who_gets_off_at_the_end_of_a_step_rides_until_then(kit):
    engine = Engine(kit.config(), kit.tape(), kit.start_ns)
    engine.add(kit.arrival(0, output=1))
    engine.step()
    assert engine.riding_at(engine.now_ns - 1) == 1
    assert engine.riding_at(engine.now_ns) == 0


def test_a_peak_finds_its_replicas_loaded_and_they_drain_after_it(kit, serve, endpoint):
    day = endpoint(load_s=90, replicas=2, min_replicas=1, hours=Hours.parse("07:00-20:00"))
    busy = kit.arrival(1, tenant="t", output=200)._replace(arrived_ns=at("2026-01-01T19:59:59"))
    arrivals = [
        kit.arrival(0)._replace(arrived_ns=at("2026-01-01T06:00")),
        busy._replace(request_id="base"),
        busy,
        kit.arrival(2)._replace(arrived_ns=at("2026-01-02T09:00")),
    ]
    tapes = serve(Fleet((day,)), arrivals)
    base, (first, second) = tapes.of("a-0"), tapes.of("a-1")
    assert len(base) == 1 and base[0].runs[-1].load_ns == 0
    run = first.runs[-1]
    assert (run.started_ns, run.load_ns) == (at("2026-01-01T06:58:30"), 90 * SECOND)
    assert [r.request_id for r in first.requests] == [busy.request_id]
    assert run.ended_ns == first.requests[0].finished_ns > at("2026-01-01T20:00")
    assert second.runs[-1].started_ns == at("2026-01-02T06:58:30")
    assert second.runs[-1].run_id != run.run_id
    assert second.runs[-1].ended_ns == base[0].runs[-1].ended_ns


def test_a_run_that_drains_for_long_delays_the_next_one(kit, serve, endpoint):
    day = endpoint(load_s=1, hours=Hours.parse("07:00-07:01, 07:02-07:03"), engine=kit.config(kv_blocks=10_000))
    late = kit.arrival(0, output=11_000)._replace(arrived_ns=at("2026-01-01T07:00:59"))
    following = kit.arrival(1)._replace(arrived_ns=at("2026-01-01T07:01:30"))
    first, second = serve(Fleet((day,)), [late, following]).of("a-0")
    drained_ns = first.runs[-1].ended_ns
    assert drained_ns > at("2026-01-01T07:02")
    assert second.runs[-1].started_ns >= drained_ns
    assert second.requests[0].scheduled_ns >= drained_ns + SECOND


def test_who_comes_when_nobody_is_up_waits_for_the_next_replica(kit, serve, endpoint):
    day = endpoint(load_s=30, replicas=2, hours=Hours.parse("07:00-20:00"))
    arrivals = [kit.arrival(n)._replace(arrived_ns=at("2026-01-01T05:00") + n) for n in range(3)]
    tapes = serve(Fleet((day,)), arrivals)
    assert {r.arrived_ns for r in tapes.requests} == {a.arrived_ns for a in arrivals}
    assert {r.scheduled_ns for r in tapes.requests} == {at("2026-01-01T07:00")}
    assert [len(tapes.of(f"a-{n}")[0].requests) for n in (0, 1)] == [2, 1]


def test_who_comes_when_nobody_will_ever_be_up_is_rejected(kit, serve, endpoint):
    gone = endpoint(until_ns=kit.start_ns + SECOND)
    tapes = serve(Fleet((gone,)), [kit.arrival(0), kit.arrival(1, at_ms=1_000), kit.arrival(2, at_ms=2_000)])
    assert [(r.request_id, r.finish_reason) for r in tapes.requests] == [
        ("a-0", "stop"), ("a-1", "rejected"), ("a-2", "rejected"),
    ]  # fmt: skip
    served, refused = tapes.lasts
    assert served.ended_ns == kit.start_ns + SECOND
    assert refused.ended_ns == refused.started_ns and refused.run_id != served.run_id


def test_replicas_without_riders_are_up_all_the_same(kit, serve, endpoint):
    tapes = serve(Fleet((endpoint(replicas=3),)), [kit.arrival(0, output=40)])
    assert len({(run.started_ns, run.ended_ns) for run in tapes.lasts}) == 1
    assert len(tapes.lasts) == 3


def test_a_run_that_would_begin_after_the_last_step_does_not_begin(kit, serve, endpoint):
    day = endpoint(load_s=0, replicas=2, min_replicas=1, hours=Hours.parse("07:00-20:00"))
    for second, runs in ((58, 1), (59, 2)):
        last = kit.arrival(0, output=190)._replace(arrived_ns=at(f"2026-01-01T06:59:{second}"))  # rides for 1.1 s
        assert len(serve(Fleet((day,)), [last])) == runs


def test_the_order_of_endpoints_in_the_file_changes_nothing(kit, serve, endpoint):
    left, right = endpoint("left", replicas=2), endpoint("right", engine=kit.config(max_num_seqs=2), replicas=3)
    arrivals = [kit.arrival(n, at_ms=9 * n, tenant="ab"[n % 2], output=30) for n in range(40)]
    routes = (Route("right", tenant="b"), Route("left"))
    one, other = (serve(Fleet(order, routes), arrivals) for order in ((left, right), (right, left)))
    for number, name in [(n, name) for name, count in (("left", 2), ("right", 3)) for n in range(count)]:
        (tape,), (same,) = one.of(f"{name}-{number}"), other.of(f"{name}-{number}")
        assert tape.requests == [r._replace(run_id=tape.runs[0].run_id) for r in same.requests]
        assert tape.requests


def test_a_paced_fleet_tells_the_same(kit, serve, endpoint):
    wall = [5_000]

    def nap(seconds: float) -> None:
        wall[0] += int(seconds * 1e9) + 1

    fleet = Fleet((endpoint("a", load_s=0.2, replicas=2), endpoint("b")), (Route("b", tenant="b"),))
    arrivals = [kit.arrival(n, at_ms=130 * n, tenant="ab"[n % 2], output=30) for n in range(30)]
    ticks: list[int] = []
    paced = serve(fleet, arrivals, pace=Pace(2, lambda: wall[0], nap), on_tick=lambda: ticks.append(wall[0]))
    assert {key: tape.events for key, tape in paced.items()} == {
        key: tape.events for key, tape in serve(fleet, arrivals).items()
    }
    assert [run.ended_ns for run in paced.lasts] == [run.ended_ns for run in serve(fleet, arrivals).lasts]
    assert 3 <= len(ticks) <= 6
    assert wall[0] >= (arrivals[-1].arrived_ns - arrivals[0].arrived_ns) // 2


def test_an_interrupted_fleet_ends_its_runs_at_the_last_thing_told(kit, serve, endpoint):
    def stop() -> None:
        raise KeyboardInterrupt

    tapes = Tapes(kit.tape)
    with pytest.raises(KeyboardInterrupt):
        replay_fleet(
            Fleet((endpoint(replicas=2),)),
            [kit.arrival(n, at_ms=20 * n, prompt=30) for n in range(900)],
            tapes.open,
            on_tick=stop,
        )
    assert len(tapes.requests) < 900
    for tape in tapes.values():
        last = tape.steps[-1]
        assert tape.runs[-1].ended_ns >= last.started_ns + last.duration_ns


def test_arrivals_out_of_order_are_refused(kit, serve, endpoint):
    with pytest.raises(ValueError, match="arrives before"):
        serve(Fleet((endpoint(),)), [kit.arrival(0, at_ms=5), kit.arrival(1, at_ms=4)])
