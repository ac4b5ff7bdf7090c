"""A paced engine keeps to the clock on the wall, and catches up a lead at once."""

from farebox.engine.pace import Pace


class Wall:
    def __init__(self) -> None:
        self.ns = 1_000

    def __call__(self) -> int:
        return self.ns


def test_virtual_time_follows_the_wall_times_the_speed():
    wall = Wall()
    pace = Pace(3.0, clock=wall)
    pace.start(500)
    wall.ns += 100
    assert pace.now_ns == 500 + 300


def test_a_lead_is_due_at_once():
    wall = Wall()
    pace = Pace(1.0, lead_ns=7_000, clock=wall)
    pace.start(500)
    assert pace.now_ns == 7_500
    wall.ns += 10
    assert pace.now_ns == 7_510
