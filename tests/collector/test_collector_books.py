"""The books of a store: the bills of its raw ledger, from no more of it than they need, read once."""

import pytest

from farebox.collector.books import load_books
from farebox.costing.books import Books
from farebox.costing.closing import close
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.events import (
    BUDGETS,
    CAPACITIES,
    CLOSINGS,
    LEDGER,
    MINUTE_NS,
    REQUESTS,
    SHARES,
    STEPS,
    TENANTS,
    Batch,
    Budget,
    Capacity,
    LedgerLine,
    Progress,
    Rate,
    Run,
    Tenant,
)
from farebox.storage.store import create_store

DAY = 86_400 * 10**9
SEPTEMBER, OCTOBER, NOVEMBER = (Period.parse(f"2026-{month:02}") for month in (9, 10, 11))
START, END = SEPTEMBER.to_ns - 3 * DAY, NOVEMBER.from_ns + 2 * DAY


def make_run(engine_id="e", **times):
    settings = {"mode": "continuous", "max_num_seqs": 8, "clock": "real", "load_ns": 0}
    unknown = dict.fromkeys(("max_num_batched_tokens", "block_bytes", "kv_blocks", "step_model"))
    place = {"host": "h", "gpu_type": "H100", "gpu_uuids": (), "gpus": 1, "model": "m", "weights": "bf16"}
    return Run(engine_id=engine_id, run_id="r", **place, **settings, **unknown, **times)


def fill(store, every=4 * 3600 * 10**9, ended=False):
    """One run around October: a minute of a tenant every four hours, everything else idle."""
    run = make_run(started_ns=START, heartbeat_ns=END, ended_ns=END if ended else None)
    lines = []
    for number, at in enumerate(range(START, END, every)):
        until = min(at + every, END)
        rest = [("tenant", "AB"[number % 2], at, MINUTE_NS), ("idle", "", until - MINUTE_NS, until - at - MINUTE_NS)]
        lines += [
            LedgerLine(minute, "e", "h", "H100", account, name, "", "m", "", ns, 3, 0, 2, 1, 0, "step")
            for account, name, minute, ns in rest
        ]
    nothing = [table.to_arrow([]) for table in (STEPS, SHARES, REQUESTS)]
    (store.append_archive if ended else store.append)(Batch(run, *nothing, LEDGER.to_arrow(lines), Progress(0, 0, END)))


@pytest.fixture
def store(tmp_path):
    with create_store(tmp_path / "s") as opened:
        fill(opened)
        opened.put_rate(Rate("any", "", "USD", "3.99", None, 0, None, ""))
        opened.put_rate(Rate("host", "h", "USD", "10/3", None, OCTOBER.from_ns + 10 * DAY + DAY // 2, None, ""))
        opened.put(TENANTS, Tenant("A", "a", "blue", None, None, 0, OCTOBER.from_ns + 5 * DAY))
        opened.put(CAPACITIES, Capacity("h", "H100", 2, OCTOBER.from_ns, None, ""))
        yield opened


@pytest.fixture
def scans(store, monkeypatch):
    """The windows of the ledger that were read."""
    windows, scan = [], store.scan

    def counted(table, columns=None, start_ns=None, end_ns=None, *rest, **options):
        windows.append((table.name, start_ns, end_ns))
        return scan(table, columns, start_ns, end_ns, *rest, **options)

    monkeypatch.setattr(store, "scan", counted)
    return windows


def raw(store):
    """Books with every line as it was recorded."""
    return Books(
        store.read(LEDGER),
        tuple(store.runs()),
        tuple(store.rates()),
        *(tuple(store.settings(table)) for table in (CAPACITIES, TENANTS)),
        budgets=tuple(store.settings(BUDGETS)),
        closings=tuple(store.settings(CLOSINGS)),
    )


def same(a, b):
    return (a.lines, a.total, a.invoice_micro, a.check(), a.budgets) == (
        b.lines,
        b.total,
        b.invoice_micro,
        b.check(),
        b.budgets,
    )


@pytest.mark.parametrize("by", [("tenant", "day"), ("team",), ("hour", "tenant")])
@pytest.mark.parametrize("asked", [None, OCTOBER, Period.parse("2026-10", "America/New_York")])
def test_bills_are_those_of_the_raw_ledger(store, by, asked):
    books = load_books(store, *([asked] if asked else []), hourly="hour" in by)
    assert books.ledger.num_rows < raw(store).ledger.num_rows or "hour" in by
    bill = build_report(books, asked, by)
    assert same(bill, build_report(raw(store), asked, by))
    assert bill.check() == ()


def test_the_ledger_is_read_once_and_only_where_the_bill_looks(store, scans):
    load_books(store, OCTOBER)
    assert scans == [("ledger", OCTOBER.from_ns, OCTOBER.to_ns)]
    scans.clear()
    load_books(store)
    assert scans == [("ledger", None, None)]


def test_a_budget_needs_all_of_its_own_period_and_one_of_another_time_nothing(store, scans):
    for period in ("2026-09", "2026"):
        store.put(BUDGETS, Budget("blue", period, "UTC", "USD", None, 10**9, 0))
    day = Period.parse("2026-10-04")
    books = load_books(store, day, hourly=False)
    year = Period.parse("2026")
    assert scans == [("ledger", year.from_ns, year.to_ns)]
    assert same(build_report(books, day), build_report(raw(store), day))


def test_closed_time_is_read_for_the_bill_that_holds_its_corrections_and_for_no_other(store, scans):
    store.put(CLOSINGS, close(load_books(store, SEPTEMBER), SEPTEMBER))
    scans.clear()
    load_books(store, NOVEMBER)
    load_books(store, OCTOBER)
    assert scans == [("ledger", NOVEMBER.from_ns, NOVEMBER.to_ns), ("ledger", SEPTEMBER.from_ns, OCTOBER.to_ns)]


def test_an_empty_store_has_empty_books(tmp_path):
    with create_store(tmp_path / "s") as opened:
        assert load_books(opened).ledger.num_rows == load_books(opened, OCTOBER).ledger.num_rows == 0


def test_rows_in_the_archive_and_rows_that_are_only_hot_count_once(tmp_path):
    with create_store(tmp_path / "s") as opened:
        fill(opened, every=DAY, ended=True)
        run = make_run("f", started_ns=END, heartbeat_ns=END + MINUTE_NS, ended_ns=None)
        late = LedgerLine(END, "f", "h", "H100", "tenant", "A", "", "m", "", MINUTE_NS, 0, 0, 0, 0, 0, "step")
        nothing = [table.to_arrow([]) for table in (STEPS, SHARES, REQUESTS)]
        opened.append(Batch(run, *nothing, LEDGER.to_arrow([late]), Progress(0, 0, END + MINUTE_NS)))
        assert opened.extent(LEDGER) == (START, END)
        assert build_report(load_books(opened)).total.gpu_ns == END - START + MINUTE_NS


def test_a_bill_taken_while_the_run_goes_on_adds_up(store, monkeypatch):
    """Between any two questions to the store, another hour is recorded."""
    told = [END]

    def one_more_hour():
        began, told[0] = told[0], told[0] + 3600 * 10**9
        run = make_run(started_ns=START, heartbeat_ns=told[0], ended_ns=None)
        idle = LedgerLine(began, "e", "h", "H100", "idle", "", "", "m", "", 3600 * 10**9, 0, 0, 0, 0, 0, "step")
        nothing = [table.to_arrow([]) for table in (STEPS, SHARES, REQUESTS)]
        store.append(Batch(run, *nothing, LEDGER.to_arrow([idle]), Progress(0, 0, told[0])))

    for name in ("runs", "extent", "scan", "settings"):
        ask = getattr(store, name)

        def then_more(*args, ask=ask, **options):
            one_more_hour()
            answer = ask(*args, **options)
            return answer if isinstance(answer, list | tuple) else _and_more(answer, one_more_hour)

        monkeypatch.setattr(store, name, then_more)
    books = load_books(store)
    assert told[0] > END
    assert sum(books.ledger["gpu_ns"].to_pylist()) == books.runs[0].wall_end_ns - START
    assert not [told for told in build_report(books).check() if "wall" in told]


def _and_more(batches, more):
    for batch in batches:
        yield batch
        more()
