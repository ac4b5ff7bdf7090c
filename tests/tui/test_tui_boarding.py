"""Who sits where, from cells and finished requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from farebox.tui.boarding import Boarding
from farebox.tui.bus import bus, marks_of, parts_by_age, plan
from farebox.tui.glyphs import ASCII, UNICODE
from farebox.tui.line import plain

ACME = ("acme", "standard")


def ride(make, boarding, seq, *counts):
    """A step of 10 ms in which tenants t0, t1 … ride as often as `counts` says."""
    at = make.START + seq * 10 * make.MS
    step = make.step(seq, at, 10 * make.MS, running=sum(counts))
    boarding.step(step, [make.share(step, f"t{i}", seqs=n) for i, n in enumerate(counts) if n])
    return boarding.rides[-1]


def test_newcomers_sit_behind_and_the_longest_rider_is_taken_to_leave(make):
    boarding = Boarding()
    ride(make, boarding, 0, 1)
    ride(make, boarding, 1, 3)
    last = ride(make, boarding, 2, 2)
    assert last.off == {("t0", "standard"): 1}
    assert last.on == {}
    since = [seat.since_ns for seat in last.seats["t0", "standard"]]
    assert since == [make.START + 10 * make.MS] * 2
    assert not any(seat.is_exact for seat in last.seats["t0", "standard"])


def test_a_finished_request_names_the_seat_that_gets_free(make):
    boarding = Boarding()
    ride(make, boarding, 0, 1)
    ride(make, boarding, 1, 2)
    ride(make, boarding, 2, 3)
    end = make.START + 30 * make.MS
    request = make.request(1, end, tenant_id="t0", scheduled_ns=make.START + 10 * make.MS)
    boarding.finished(request)
    last = ride(make, boarding, 3, 3)
    kind = ("t0", "standard")
    assert (last.on, last.off) == ({kind: 1}, {kind: 1})
    assert [seat.since_ns - make.START for seat in last.seats[kind]] == [0, 20 * make.MS, 30 * make.MS]
    assert [seat.is_exact for seat in last.seats[kind]] == [False, True, True]


def test_a_request_that_ends_later_keeps_its_seat(make):
    boarding = Boarding()
    ride(make, boarding, 0, 2)
    boarding.finished(make.request(1, make.START + 25 * make.MS, tenant_id="t0", scheduled_ns=make.START))
    assert ride(make, boarding, 1, 2).off == {}
    assert ride(make, boarding, 3, 1).off == {("t0", "standard"): 1}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_there_are_as_many_seats_as_cells_tell(make, counts):
    boarding = Boarding()
    aboard = 0
    for seq, pair in enumerate(counts):
        found = ride(make, boarding, seq, *pair)
        assert sum(map(len, found.seats.values())) == sum(pair)
        if seq:
            assert aboard + sum(found.on.values()) - sum(found.off.values()) == sum(pair)
        assert all(list(seats) == sorted(seats, key=lambda s: s.since_ns) for seats in found.seats.values())
        aboard = sum(pair)


@given(st.integers(1, 2000), st.integers(20, 300), st.integers(2, 80))
def test_every_seat_has_a_place_in_the_bus(seats, width, height):
    style, rows = plan(seats, width, height)
    assert rows % 2 == 0
    if style.width > 1:
        assert -(-seats // rows) * style.width <= width
        assert rows * (style.height + style.gap) <= height


def test_the_bus_draws_riders_newcomers_fast_and_empty_seats(make):
    boarding = Boarding()
    ride(make, boarding, 0, 2)
    step = make.step(1, make.START + 10 * make.MS, 10 * make.MS, running=5)
    cells = [make.share(step, "t0", seqs=3), make.share(step, "v", tier="fast")]
    boarding.step(step, cells)
    found = boarding.rides[-1]
    lines = bus(found, 8, marks_of(found.seats), parts_by_age(found), 30, 9, ASCII)
    text = "\n".join(map(plain, lines))
    assert text.isascii() or "│" in text
    assert [text.count(letter) for letter in "AB?"] == [3, 1, 1]
    assert text.count(".") >= 3
    assert "A+" in "\n".join(map(plain, bus(found, 8, marks_of(found.seats), parts_by_age(found), 60, 20, UNICODE)))
