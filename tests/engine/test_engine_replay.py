"""Replay: idle gaps, pacing, heartbeats and interruption."""

import signal
from itertools import count, pairwise

import pytest

from farebox.engine.engine import Engine
from farebox.engine.pace import BEAT_NS, Pace
from farebox.engine.replay import STEPS_PER_TICK, replay

MS = 1_000_000


class Wall:
    """A clock on the wall that only sleeping moves."""

    def __init__(self) -> None:
        self.now_ns = 5_000
        self.naps: list[float] = []

    def pace(self, speed: float) -> Pace:
        return Pace(speed, lambda: self.now_ns, self.sleep)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.naps.append(seconds)
        self.now_ns += int(seconds * 1e9) + 1


def sparse(kit, requests=6, gap_ms=3_000):
    return [kit.arrival(n, at_ms=n * gap_ms, output=20) for n in range(requests)]


def test_virtual_time_jumps_over_gaps_and_the_run_spans_first_arrival_to_last_step(kit):
    tape = kit.serve(kit.config(), sparse(kit))
    run = tape.runs[-1]
    assert (run.clock, run.load_ns, run.started_ns) == ("virtual", 0, kit.start_ns)
    assert run.ended_ns == run.heartbeat_ns == tape.steps[-1].ended_ns
    assert tape.runs[0].ended_ns is None


def test_no_arrivals_is_a_run_of_no_length(kit):
    run = kit.serve(kit.config(), []).runs[-1]
    assert run.ended_ns == run.started_ns


def test_arrivals_are_drawn_only_when_their_time_has_come(kit):
    drawn = []

    def endless():
        for n in count():
            drawn.append(n)
            yield kit.arrival(n, at_ms=n * 100, output=2)

    tape, ticks = kit.tape(), []

    def stop_at_the_third_tick():
        ticks.append(len(tape.steps))
        if len(ticks) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(Engine(kit.config(), tape, kit.start_ns), endless(), on_tick=stop_at_the_third_tick)
    assert ticks == [STEPS_PER_TICK, 2 * STEPS_PER_TICK, 3 * STEPS_PER_TICK]
    assert len(drawn) <= len(tape.requests) + 2


@pytest.mark.parametrize("speed", [0.5, 1.0, 40.0])
def test_a_pace_changes_when_things_are_told_but_not_what(kit, speed):
    wall, arrivals = Wall(), sparse(kit)
    begun_ns = wall.now_ns
    paced = kit.serve(kit.config(), arrivals, pace=wall.pace(speed))
    assert paced.events == kit.serve(kit.config(), arrivals).events
    last_step = paced.steps[-1]
    real_ns = wall.now_ns - begun_ns
    expected_ns = (last_step.started_ns - kit.start_ns) / speed
    assert real_ns == pytest.approx(expected_ns, rel=0.01)


def test_the_heartbeat_moves_every_second_idle_or_not(kit):
    wall, beats = Wall(), []
    tape = kit.tape()
    engine = Engine(kit.config(), tape, kit.start_ns)
    arrivals = [kit.arrival(0, output=300), kit.arrival(1, at_ms=9_000, output=2)]
    replay(engine, arrivals, wall.pace(1.0), lambda: beats.append((wall.now_ns, tape.runs[-1].heartbeat_ns)))
    reals, virtuals = zip(*beats, strict=True)
    assert max(b - a for a, b in pairwise(reals)) <= 1_000_000_000
    assert list(virtuals) == sorted(virtuals)
    for real_ns, virtual_ns in beats:
        assert virtual_ns - kit.start_ns == pytest.approx(real_ns - 5_000, abs=20 * MS)
    assert max(wall.naps) * 1e9 <= BEAT_NS


def test_an_interruption_while_idle_ends_the_run_with_the_last_heartbeat(kit):
    wall, tape = Wall(), kit.tape()
    engine = kit.checked(kit.config(), tape, kit.start_ns)

    def interrupt_after_two_seconds():
        if wall.now_ns > 2_000_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(engine, sparse(kit), wall.pace(1.0), interrupt_after_two_seconds)
    engine.check_integrity()
    run = tape.runs[-1]
    assert run.ended_ns == run.heartbeat_ns == tape.runs[-2].heartbeat_ns > tape.steps[-1].ended_ns


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where these tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_the_middle_of_a_step_waits_for_its_end(kit):
    class Impatient(type(kit.tape())):
        def step(self, step, cells):
            if step.step_seq == 3:
                signal.raise_signal(signal.SIGINT)
            super().step(step, cells)

    before = signal.getsignal(signal.SIGINT)
    tape = Impatient()
    engine = kit.checked(kit.config(), tape, kit.start_ns)
    with pytest.raises(KeyboardInterrupt):
        replay(engine, [kit.arrival(1, output=4), kit.arrival(2, output=50)])
    engine.check_integrity()
    assert [s.step_seq for s in tape.steps] == [0, 1, 2, 3]
    assert [r.request_id for r in tape.requests] == ["a-1"]  # its last step was told, and so was its end
    assert tape.runs[-1].ended_ns == tape.steps[-1].ended_ns
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_sleeping_ends_the_sleep(kit):
    wall = Wall()

    def interrupted(seconds):
        wall.sleep(seconds)
        if wall.now_ns > 1_000_000_000:
            signal.raise_signal(signal.SIGINT)

    tape = kit.tape()
    with pytest.raises(KeyboardInterrupt):
        replay(Engine(kit.config(), tape, kit.start_ns), sparse(kit), Pace(1.0, lambda: wall.now_ns, interrupted))
    assert wall.now_ns < 1_600_000_000
    assert tape.runs[-1].ended_ns is not None


def test_arrivals_out_of_order_are_refused(kit):
    with pytest.raises(ValueError, match="a-2 arrives before a-1"):
        kit.serve(kit.config(), [kit.arrival(0), kit.arrival(1, at_ms=0), kit.arrival(2, at_ms=-1)])


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_a_speed_must_be_a_positive_number(speed):
    with pytest.raises(ValueError, match="must be a positive number"):
        Pace(speed)
