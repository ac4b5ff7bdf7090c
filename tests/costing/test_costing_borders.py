"""Borders: a ledger added up between them makes the same bills as the ledger itself, to the last unit."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from costing_books import DAY, HOUR, books_of, capacity, line, price, rate, tenant
from costing_helpers import make_run
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.borders import borders
from farebox.costing.closing import PeriodOpen, close
from farebox.costing.closing_cells import freeze
from farebox.costing.explain import explain, to_json
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.costing.rollup import LINE_COLUMNS, roll_ledger
from farebox.events import LEDGER, MINUTE_NS, Budget, Closing

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York")
CHANGE = Period.parse("2026-10-25", "Europe/Berlin")
START = CHANGE.from_ns - 2 * DAY
SPAN = 6 * DAY
BY = ("tenant",), ("team", "day"), ("hour", "tenant"), ("engine", "model", "cost_centre")

instant = st.integers(0, SPAN // MINUTE_NS).map(lambda minute: START + minute * MINUTE_NS)
uneven = st.integers(0, SPAN).map(lambda ns: START + ns)


def rolled(books, *periods, hourly):
    """The books as a store gives them for these periods, in two batches."""
    minutes = books.ledger.column("minute_ns").to_pylist()
    first, last = min(minutes), max(minutes)
    asked = periods or [build_report(books).period]
    lines = books.ledger.select(LINE_COLUMNS)
    batches = pa.concat_tables([lines[: len(lines) // 2], lines[len(lines) // 2 :]]).to_batches()
    return replace(books, ledger=roll_ledger(batches, borders(books, asked, hourly=hourly), first, last))


def same_bill(a, b):
    assert a.lines == b.lines
    assert (a.total, a.tenants, a.period, a.basis, a.places) == (b.total, b.tenants, b.period, b.basis, b.places)
    assert (a.invoice_micro, a.wall_gpu_ns, a.check()) == (b.invoice_micro, b.wall_gpu_ns, b.check())
    assert (a.unpriced, a.budgets, a.labels, a.closed_as) == (b.unpriced, b.budgets, b.labels, b.closed_as)
    assert a.cells == b.cells


@st.composite
def chain(draw, make, at=instant, most=3):
    """Settings of one name, each from where the one before ends; the last may end, too."""
    cuts = sorted(draw(st.sets(at, min_size=1, max_size=most + 1)))
    ends = [*cuts[1:], draw(st.sampled_from([None, cuts[-1] + HOUR + MINUTE_NS]))]
    return [make(draw, start, end) for start, end in zip(cuts, ends, strict=True)]


def made_rate(scope, name):
    return lambda draw, start, end: rate(draw(st.sampled_from(["3.99", "7/3"])), start, end, scope, name)


def made_tenant(name):
    return lambda draw, start, end: tenant(
        name,
        draw(st.sampled_from(["red", "blue", None])),
        start,
        end,
        cost_centre=draw(st.sampled_from(["1", "2"])),
        reserved=draw(st.sampled_from([None, 500])),
    )


def made_price(draw, start, end):
    return price(
        "m", draw(st.sampled_from(["standard"])), fresh=draw(st.sampled_from(["1", "0.7"])), start=start, end=end
    )


@st.composite
def ledger_lines(draw):
    rows = draw(
        st.lists(
            st.tuples(
                instant,
                st.sampled_from(["a", "b", "idle", "overhead"]),
                st.sampled_from(["e", "f"]),
                st.integers(0, 2 * MINUTE_NS),
                st.integers(0, 5000),
            ),
            min_size=1,
            max_size=40,
        )
    )
    found = []
    for start, who, engine, gpu_ns, tokens in rows:
        names = {"account": who} if len(who) > 1 else {"tenant": who, "prompt_tokens": tokens, "output_tokens": 1}
        found.append(line(gpu_ns=gpu_ns, start=start, engine_id=engine, kv_block_ns=5, **names))
    return found


@st.composite
def drawn_books(draw):
    runs = [
        make_run(engine_id=name, host="h", started_ns=START + draw(st.integers(0, DAY)), ended_ns=START + SPAN - DAY)
        for name in ("e", "f")
    ]
    return books_of(
        draw(ledger_lines()),
        runs,
        rates=[*draw(chain(made_rate("any", ""))), *draw(chain(made_rate("engine", "f")))],
        tenants=[*draw(chain(made_tenant("a"), uneven)), *draw(chain(made_tenant("b"), uneven))],
        prices=draw(chain(made_price)),
        capacities=draw(chain(lambda _, start, end: capacity(start, end), most=2)),
        budgets=[Budget("red", "2026-10", draw(st.sampled_from(ZONES)), "USD", 1_000_000, None, 0)],
    )


@tries(20)
@given(
    drawn_books(),
    st.sampled_from(ZONES),
    st.sampled_from(BY),
    st.sampled_from(["separate", "weighted", "even", "reservation"]),
    st.tuples(instant, instant).filter(lambda ends: ends[0] != ends[1]),
)
def test_every_bill_is_the_same(books, tz, by, idle, ends):
    period = Period.between(*sorted(ends), tz)
    added = rolled(books, period, hourly="hour" in by)
    same_bill(build_report(books, period, by, idle), build_report(added, period, by, idle))


@tries(10)
@given(drawn_books(), st.sampled_from(BY))
def test_so_is_the_bill_of_all_time(books, by):
    same_bill(build_report(books, None, by), build_report(rolled(books, hourly="hour" in by), None, by))


@tries(10)
@given(drawn_books(), ledger_lines(), drawn_books(), st.sampled_from(ZONES))
def test_so_are_corrections_of_what_was_closed_on_other_terms(books, late, other, tz):
    """What comes late is priced with the settings of its closing, which are not today's."""
    closed = Period.between(START, START + 3 * DAY + HOUR, tz)
    content = json.dumps(freeze(build_report(books, closed), books))
    today = replace(
        other,
        ledger=pa.concat_tables([books.ledger, LEDGER.to_arrow(late)]),
        closings=(Closing(*closed, 1, 0, "", content, None, None),),
    )
    open_period = Period.between(closed.to_ns, closed.to_ns + DAY, "UTC")
    same_bill(build_report(today, open_period), build_report(rolled(today, open_period, hourly=False), open_period))


@tries(10)
@given(drawn_books(), st.sampled_from(ZONES))
def test_so_are_explanations(books, tz):
    a, b = (Period.between(START + day * DAY, START + (day + 2) * DAY, tz) for day in (1, 3))
    assert to_json(explain(books, a, b)) == to_json(explain(rolled(books, a, b, hourly=False), a, b))


@pytest.mark.parametrize("newest", [-2, -1, 0, 1])
def test_a_period_may_be_closed_when_its_last_minute_is_told(newest):
    """The ledger's newest minute decides, not the border before it."""
    day = Period.parse("2026-10-25", "UTC")
    lines = [line("idle", gpu_ns=1, start=at) for at in (day.from_ns, day.to_ns + newest * MINUTE_NS)]
    books = books_of(lines, runs=[])
    results = []
    for each in (books, rolled(books, day, hourly=False)):
        try:
            results.append(close(each, day, now_ns=0))
        except PeriodOpen as error:
            results.append(str(error))
    assert results[0] == results[1]
    assert isinstance(results[0], Closing) == (newest >= -1)


def test_a_day_is_one_line_for_each_name_and_its_last_minute_another():
    day = Period.parse("2026-10-25", "Europe/Berlin")
    lines = [line("idle", gpu_ns=7, start=at) for at in range(day.from_ns, day.to_ns, MINUTE_NS)]
    books = books_of(lines)
    by_day, by_hour = (rolled(books, day, hourly=hourly).ledger for hourly in (False, True))
    assert by_day.column("gpu_ns").to_pylist() == [(25 * 60 - 1) * 7, 7]
    assert by_hour.num_rows == 25 + 1
    assert by_day.column("kv_block_ns").null_count == by_day.num_rows


def test_a_team_that_moves_within_a_day_splits_it():
    """Even where the move is within a minute, which then still belongs to the old team."""
    day = Period.parse("2026-10-26", "UTC")
    move = day.from_ns + 7 * HOUR + 1
    teams = [tenant("a", "red", 0, move), tenant("a", "blue", move), tenant("b", "blue")]
    lines = [line("tenant", "a", 3, day.from_ns + minute * MINUTE_NS) for minute in (0, 419, 420, 421, 900)]
    books = books_of(lines, tenants=teams)
    added = build_report(rolled(books, day, hourly=False), day, ("team",))
    assert {each.keys[0]: each.gpu_ns for each in added.lines if each.account == "tenant"} == {"red": 9, "blue": 6}
    same_bill(build_report(books, day, ("team",)), added)


def test_a_budget_is_spent_by_the_days_of_its_own_zone():
    """Idle time is paid by the tenants of a day, which in Kathmandu starts at 18:15 UTC."""
    day = Period.parse("2026-10-26", "UTC")
    used = [("a", 1, 5), ("idle", 2, 5), ("b", 19, 5), ("idle", 20, 50)]
    lines = [
        line("idle" if who == "idle" else "tenant", "" if who == "idle" else who, n * MINUTE_NS, day.from_ns + h * HOUR)
        for who, h, n in used
    ]
    books = books_of(
        lines,
        rates=[rate("6")],
        tenants=[tenant("a", "red"), tenant("b", "blue")],
        budgets=[Budget("red", "2026-10", "Asia/Kathmandu", "USD", 1_000_000, None, 0)],
    )
    raw, added = (build_report(each, day, ("team",), "weighted") for each in (books, rolled(books, day, hourly=False)))
    assert added.budgets[0].spent_micro == 1_000_000
    same_bill(raw, added)
