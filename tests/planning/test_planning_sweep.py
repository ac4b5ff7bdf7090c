"""The curve of a setting: its points are what `whatif` says, its knee and rise are where they are seen."""

import json
from dataclasses import replace
from multiprocessing import active_children

import pytest
from planning_helpers import recorded_in

from farebox.planning import pool
from farebox.planning.advise import tried
from farebox.planning.errors import PlanError
from farebox.planning.live import under
from farebox.planning.outcome import Waits
from farebox.planning.pool import live_all
from farebox.planning.scenario import Scenario, parse_scenario
from farebox.planning.sweep import Point, Sweep, _keep, parse_sweep, sweep
from farebox.planning.sweep_text import mark, sweep_html


def curve(*costs, preempted=()):
    waits = Waits(1, 0, None, None, None)
    points = [
        Point(str(at), cost, cost, cost, cost, waits, 7 if at in preempted else 0, 0, None, at)
        for at, cost in enumerate(costs)
    ]
    return Sweep("max_num_seqs", None, tuple(points), (), "USD")


def test_the_knee_is_where_the_curve_bends_and_the_rise_where_preemption_makes_it_dearer():
    sweep = curve(1000, 500, 300, 290, 285, 320, preempted=(5,))
    assert (sweep.knee, sweep.cheapest, sweep.rises) == (2, 4, 5)
    assert "dearer again" in mark(sweep, 5)


def test_a_curve_that_does_not_fall_has_no_knee_and_dearer_points_without_preemption_no_rise():
    assert curve(100, 200, 300).knee is None
    assert curve(300, 200, 100, 150).rises is None
    assert curve().cheapest is None


def test_a_sweep_says_what_whatif_says(small, farebox):
    told = json.loads(farebox("whatif", str(small), "--sweep", "max_num_seqs=2,4,16", "--format", "json").stdout)
    assert [point["value"] for point in told["points"]] == ["2", "4", "16"]
    assert told["baseline"]["is_exact"]
    recorded = recorded_in(small)
    for point in told["points"]:
        outcome = under(recorded, parse_scenario([f"max_num_seqs={point['value']}"]))
        assert (point["busy_micro"], point["total_micro"]) == (outcome.busy_micro, outcome.total_micro)
        assert point["waits"]["ttft"]["p99_ns"] == outcome.waits().ttft.p99_ns


def test_numbers_of_seats_that_nobody_reaches_share_a_replay_and_each_says_what_its_own_would(small, monkeypatch):
    recorded, replays = recorded_in(small), []

    def counted(*work):
        replays.append(work[1])
        return under(*work)

    monkeypatch.setattr(pool, "under", counted)
    found = sweep(recorded, Scenario(), "max_num_seqs", ("2", "100", "4", "150", "200"), lambda _: None)
    assert [point.same_as for point in found.points] == [None, "200", None, "200", None]
    assert len(replays) == 2  # besides the recorded 4: 200, which tells 100 and 150, and 2
    assert "not limiting: never more than" in mark(found, 1)
    for point in found.points:
        outcome = under(recorded, parse_scenario([f"max_num_seqs={point.value}"]))
        own = _keep(recorded, parse_scenario([f"max_num_seqs={point.value}"]), outcome).point
        assert point._replace(occupancy=None, same_as=None, value="") == own._replace(occupancy=None)
        assert point.occupancy == pytest.approx(own.occupancy)


def test_a_number_of_seats_that_was_reached_tells_nothing_of_others(small):
    found = sweep(recorded_in(small), Scenario(), "max_num_seqs", ("2", "3", "4"), lambda _: None)
    assert [point.same_as for point in found.points] == [None] * 3
    assert [point.most_riders for point in found.points] == [2, 3, 4]


def test_an_interruption_keeps_what_is_done(small):
    scenarios = [parse_scenario([f"max_num_seqs={value}"]) for value in (2, 4, 8)]

    def interrupt(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    found = live_all(recorded_in(small), scenarios, _steps, interrupt)
    assert sorted(found) == [0, 1]


def test_processes_side_by_side_come_to_the_same_and_an_interruption_ends_them(small, monkeypatch):
    scenarios = [Scenario(), parse_scenario(["max_num_seqs=2"]), parse_scenario(["max_num_seqs=8"])]
    recorded = recorded_in(small)
    expected = live_all(recorded, scenarios, tried, lambda _: None)

    def interrupt(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(pool, "FEW", 0)
    found = live_all(recorded, scenarios, tried, interrupt)
    assert len(found) == 2
    assert found == {number: expected[number] for number in found}
    assert not active_children()


def _steps(recorded, scenario: Scenario, outcome) -> int:
    return outcome.steps.steps


def test_nonsense_is_refused_and_names_are_escaped(small, farebox):
    with pytest.raises(PlanError, match="several values"):
        parse_sweep("max_num_seqs=8")
    assert "at least 1" in farebox("whatif", str(small), "--sweep", "max_num_seqs=0,3", check=2).stderr
    page = sweep_html(replace(curve(2, 1), key="<b>"))
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
