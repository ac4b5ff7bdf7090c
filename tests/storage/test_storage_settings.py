"""Settings: one way for all of them, effective dates, closings that stay, and what an upgrade keeps."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.events import (
    ADVICE,
    ALERTS,
    API_KEYS,
    BUDGET_STATES,
    BUDGETS,
    CAPACITIES,
    CHANGES,
    CLOSINGS,
    LEDGER,
    MINUTE_NS,
    PRICES,
    RATES,
    REQUESTS,
    SETTING_TABLES,
    SOURCE_STATES,
    TEAM_RENAMES,
    TENANTS,
    Advice,
    Alert,
    ApiKey,
    Budget,
    BudgetState,
    Capacity,
    Change,
    Closing,
    Rate,
    SourceState,
    TeamRename,
    Tenant,
    TokenPrice,
)
from farebox.storage import effective
from farebox.storage.database import Database
from farebox.storage.effective import EffectiveError
from farebox.storage.errors import ClosedError, StoreError
from farebox.storage.live import LiveReader
from farebox.storage.migrations import migrate
from farebox.storage.settings import KEPT
from farebox.storage.store import create_store, open_store
from farebox.storage.versions import MIGRATIONS, migration

NEWEST = max(MIGRATIONS)
VERSION_1 = Path(__file__).with_name("version_1.sql")
ROWS = {
    RATES: Rate("host", "ü 1", "USD", "10/3", '{"years": 4}', 0, None, "x"),
    CAPACITIES: Capacity("ü 1", "h100_sxm", 8, 0, None, "lease"),
    TENANTS: Tenant("chat", "Chat", None, None, None, 0, None),
    API_KEYS: ApiKey("ab" * 32, "chat", "wxyz", 5, None),
    PRICES: TokenPrice("llama-3-8b", "fast", "USD", 1_000_000, "1.25", None, "10", 0, None, ""),
    BUDGETS: Budget("support", "2026-10", "Europe/Berlin", "EUR", None, 10**18, 7),
    BUDGET_STATES: BudgetState("s", "2026", "UTC", "EUR", None, None, 1, 2, None, "2026-12-01", "unknown", "ü", 7),
    SOURCE_STATES: SourceState("vllm-ü", "vllm", "down", 600, 700, "connection refused"),
    TEAM_RENAMES: TeamRename("search", "discovery", 5, 7),
    CLOSINGS: Closing("2026-09", "UTC", 600, 700, 1, 800, "00", '{"lines": []}', None, None),
    ALERTS: Alert("idle", "vllm-ü", 5, None, "idle for ü"),
    CHANGES: Change(5, "rates", "any", 0, '{"a": 1}', None, "a slip"),
    ADVICE: Advice(1, "mode", "ü", "e", "l", "c", "farebox whatif", None, None, 7, 0, 600, 700),
}


@pytest.fixture
def store(tmp_path):
    with create_store(tmp_path / "s") as opened:
        yield opened


def test_every_setting_is_kept_as_it_was_put(store):
    assert set(ROWS) == set(SETTING_TABLES)
    for table, row in ROWS.items():
        store.put(table, row)
    for table, row in ROWS.items():
        assert store.settings(table) == [row]
        assert table.from_arrow(store.read(table)) == [row]
    with LiveReader(store.path) as live:
        assert {table: live.settings(table) for table in ROWS} == {table: [row] for table, row in ROWS.items()}


@pytest.mark.parametrize("table", [table for table in SETTING_TABLES if table not in KEPT])
def test_a_setting_is_replaced_and_removed_by_its_key(store, table):
    column = next(c.name for c in table.columns if c.kind == "str" and c.name not in table.key)
    row, key = ROWS[table], [getattr(ROWS[table], name) for name in table.key]
    store.put(table, row)
    store.put(table, row._replace(**{column: "other"}))
    assert store.settings(table) == [row._replace(**{column: "other"})]
    assert store.remove(table, key) and not store.remove(table, key)
    assert store.settings(table) == []


def test_events_are_not_settings(store):
    with pytest.raises(ValueError, match="ledger holds events"):
        store.settings(LEDGER)


def closing_of(from_ns, to_ns, version=1):
    return ROWS[CLOSINGS]._replace(from_ns=from_ns, to_ns=to_ns, version=version)


def test_a_closing_stays(store):
    store.put(CLOSINGS, ROWS[CLOSINGS])
    for again in (ROWS[CLOSINGS], closing_of(600, 700, 2), closing_of(699, 900), closing_of(0, 601)):
        with pytest.raises(ClosedError, match="was closed at 1970-01-01"):
            store.put(CLOSINGS, again)
    with pytest.raises(ClosedError, match="are history and stay"):
        store.remove(CLOSINGS, (600, 700, 1))
    store.put(CLOSINGS, closing_of(700, 900))
    assert [row.from_ns for row in store.settings(CLOSINGS)] == [600, 700]


def test_a_reopened_closing_is_kept_and_the_next_one_has_the_next_version(store):
    store.put(CLOSINGS, ROWS[CLOSINGS])
    with store.changing() as changing:
        reopened = changing.reopen(ROWS[CLOSINGS], 900, "a slip")
        with pytest.raises(ClosedError, match="nothing to open"):
            changing.reopen(ROWS[CLOSINGS], 901, "twice")
    with pytest.raises(ClosedError, match="was closed at"):
        store.put(CLOSINGS, ROWS[CLOSINGS])
    store.put(CLOSINGS, closing_of(600, 700, 2))
    assert store.settings(CLOSINGS) == [reopened, closing_of(600, 700, 2)]
    assert reopened == ROWS[CLOSINGS]._replace(reopened_ns=900, reason="a slip")


def test_a_failed_change_changes_nothing(store):
    with pytest.raises(RuntimeError), store.changing() as changing:
        changing.put(RATES, ROWS[RATES])
        raise RuntimeError
    assert store.rates() == []


def minutes(*pair):
    return [None if at is None else at * MINUTE_NS for at in pair]


def tenant(start, end=None, team="a", tenant_id="t"):
    return Tenant(tenant_id, "", team, None, None, *minutes(start, end))


def enter(store, row, **options):
    with store.changing() as changing:
        return effective.enter(changing, TENANTS, row, **options)


def test_a_new_row_ends_the_open_one_and_repeating_it_changes_nothing(store):
    assert enter(store, tenant(0)) == (True, None)
    assert enter(store, tenant(5, team="b")) == (True, tenant(0, 5))
    assert enter(store, tenant(5, team="b")) == (False, None)
    assert enter(store, tenant(5, tenant_id="other")) == (True, None)
    assert store.settings(TENANTS) == [tenant(5, tenant_id="other"), tenant(0, 5), tenant(5, team="b")]
    enter(store, tenant(5, 9, team="c"), replace=True)
    assert store.settings(TENANTS)[-1] == tenant(5, 9, team="c")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (tenant(12), "holds from 1970-01-01T00:10:00Z to 1970-01-01T00:20:00Z"),
        (tenant(5), r"end the new one there \(--to 1970-01-01T00:10:00Z\)"),
        (tenant(10, 12, team="b"), "--replace"),
        (tenant(30, 30), "must end after it starts"),
        (tenant(30)._replace(from_ns=30 * MINUTE_NS + 1), "whole minutes.*00:30:00.000000001Z"),
    ],
)
def test_rows_that_would_hold_together_are_refused(store, row, message):
    enter(store, tenant(10, 20))
    with pytest.raises(EffectiveError, match=message):
        enter(store, row)
    assert store.settings(TENANTS) == [tenant(10, 20)]


def test_a_row_is_ended_once_it_has_begun(store):
    enter(store, tenant(10))
    with store.changing() as changing:
        with pytest.raises(EffectiveError, match="no record for t holds before"):
            effective.end(changing, TENANTS, ("t",), 10 * MINUTE_NS)
        assert effective.end(changing, TENANTS, ("t",), 11 * MINUTE_NS) == tenant(10, 11)
    assert store.settings(TENANTS) == [tenant(10, 11)]


def changes(store):
    return [(c.setting, c.about, c.after is None, c.reason) for c in store.settings(CHANGES)]


def test_a_row_that_is_taken_back_leaves_its_time_to_the_one_before_and_the_change_is_kept(store):
    enter(store, tenant(0))
    enter(store, tenant(5, team="b"))
    with store.changing() as changing:
        with pytest.raises(EffectiveError, match="they begin at the beginning, 1970-01-01T00:05:00Z"):
            effective.remove(changing, TENANTS, ("t",), MINUTE_NS, "a slip")
        removed = effective.remove(changing, TENANTS, ("t",), 5 * MINUTE_NS, "a slip")
    assert removed == (tenant(5, team="b"), tenant(0))
    assert store.settings(TENANTS) == [tenant(0)]
    assert changes(store) == [("tenants", "t", True, "a slip"), ("tenants", "t", False, "a slip")]


def test_what_is_replaced_or_ended_is_kept(store):
    enter(store, tenant(0))
    enter(store, tenant(0, team="b"), replace=True)
    with store.changing() as changing:
        effective.end(changing, TENANTS, ("t",), MINUTE_NS)
    assert changes(store) == [("tenants", "t", False, "replaced"), ("tenants", "t", False, "ended")]


@tries(15)
@given(rows=st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(1, 10), st.booleans()), max_size=8))
def test_whatever_is_entered_no_two_rows_hold_together(tmp_path_factory, rows):
    with create_store(tmp_path_factory.mktemp("s") / "s") as store:
        for start, end, replace in rows:
            try:
                enter(store, tenant(start, end), replace=replace)
            except EffectiveError:
                continue
        kept = store.settings(TENANTS)
    ends = [10**30 if row.to_ns is None else row.to_ns for row in kept]
    assert all(row.from_ns < end for row, end in zip(kept, ends, strict=True))
    assert all(end <= later.from_ns for end, later in zip(ends, kept[1:], strict=False))


def shape(file):
    """Every table's columns, key and indexes."""
    with closing(sqlite3.connect(file)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        return {name: connection.execute(f"PRAGMA table_info('{name}')").fetchall() for name in names}


def make_version_1(folder):
    folder.mkdir()
    with closing(sqlite3.connect(folder / "live.sqlite")) as connection:
        connection.executescript(VERSION_1.read_text("utf-8"))


def test_a_store_of_version_1_is_brought_up_with_its_rates(tmp_path, server):
    make_version_1(tmp_path / "old")
    for open_it in (open_store, LiveReader):
        with pytest.raises(
            StoreError, match=rf"older Farebox \(schema 1, this one reads {NEWEST}\): `farebox archive .*old`"
        ):
            open_it(tmp_path / "old")
    with create_store(tmp_path / "old") as store, create_store(tmp_path / "new") as new:
        assert store.rates() == [
            Rate("any", "", "USD", "1.5", None, 0, 2 * MINUTE_NS, "example"),
            Rate("gpu_type", "h100_sxm", "EUR", "3.99", None, MINUTE_NS, None, "contract 7"),
        ]
        store.append(server().batch(20))
        assert shape(store.path / "live.sqlite") == shape(new.path / "live.sqlite")


def test_a_store_of_version_2_keeps_its_budgets_and_learns_how_they_stand(tmp_path):
    make_version_1(tmp_path / "old")
    database = Database(tmp_path / "old/live.sqlite")
    migrate(database, {2: MIGRATIONS[2]})
    with database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO budgets VALUES ('support', '2026-10', 'UTC', 'USD', NULL, 5, 7)")
    database.close()
    with pytest.raises(StoreError, match=rf"schema 2, this one reads {NEWEST}"):
        open_store(tmp_path / "old")
    with create_store(tmp_path / "old") as store, create_store(tmp_path / "new") as new:
        assert store.settings(BUDGETS) == [Budget("support", "2026-10", "UTC", "USD", None, 5, 7)]
        assert store.settings(BUDGET_STATES) == []
        store.put(BUDGET_STATES, ROWS[BUDGET_STATES])
        assert store.settings(BUDGET_STATES) == [ROWS[BUDGET_STATES]]
        assert shape(store.path / "live.sqlite") == shape(new.path / "live.sqlite")


def test_a_store_of_version_4_keeps_its_closings_as_their_first_version(tmp_path):
    make_version_1(tmp_path / "old")
    database = Database(tmp_path / "old/live.sqlite")
    migrate(database, {version: MIGRATIONS[version] for version in (2, 3, 4)})
    with database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO closings VALUES ('2026-09', 'UTC', 600, 700, 800, '00', 'x')")
    database.close()
    with create_store(tmp_path / "old") as store, create_store(tmp_path / "new") as new:
        assert store.settings(CLOSINGS) == [ROWS[CLOSINGS]._replace(content="x")]
        assert shape(store.path / "live.sqlite") == shape(new.path / "live.sqlite")


def test_requests_of_an_older_store_are_kept_and_newer_ones_may_be_partly_known(tmp_path, server):
    batch = server().batch(30)
    whole = REQUESTS.from_arrow(batch.requests)
    assert whole
    with create_store(tmp_path) as store:
        store.append(batch)
    with closing(sqlite3.connect(tmp_path / "live.sqlite")) as connection:
        connection.executescript("UPDATE schema_version SET version = 6; DROP TABLE advice")
        connection.executescript("ALTER TABLE runs DROP COLUMN engine_args")
        connection.executescript("ALTER TABLE gpu DROP COLUMN active_ppm; ALTER TABLE gpu DROP COLUMN shared_by")
        connection.executescript("ALTER TABLE files DROP COLUMN foot_crc")
    with create_store(tmp_path) as store:
        assert sorted(REQUESTS.from_arrow(store.read(REQUESTS))) == sorted(whole)
        partly = whole[-1]._replace(request_id="seen", prompt_tokens=None, cached_tokens=None, output_tokens=None)
        run = batch.run._replace(heartbeat_ns=batch.run.heartbeat_ns + 1)
        progress = batch.progress._replace(requests=batch.progress.requests + 1)
        nothing = {name: getattr(batch, name).slice(0, 0) for name in ("steps", "shares", "ledger")}
        store.append(batch._replace(run=run, requests=REQUESTS.to_arrow([partly]), progress=progress, **nothing))
        assert partly in REQUESTS.from_arrow(store.read(REQUESTS))
        store.roll()
        assert partly in REQUESTS.from_arrow(store.read(REQUESTS))


def test_seats_that_an_older_store_did_not_know_are_unknown(tmp_path, server):
    with create_store(tmp_path) as store:
        for engine_id, seats in (("told", 64), ("looked-at", 0)):
            batch = server(engine_id=engine_id).batch(3)
            store.append(batch._replace(run=batch.run._replace(max_num_seqs=seats)))
        before = shape(store.path / "live.sqlite")
    with closing(sqlite3.connect(tmp_path / "live.sqlite")) as connection:
        connection.executescript("UPDATE schema_version SET version = 8")
        connection.executescript("ALTER TABLE gpu DROP COLUMN active_ppm; ALTER TABLE gpu DROP COLUMN shared_by")
        connection.executescript("ALTER TABLE files DROP COLUMN foot_crc")
    with create_store(tmp_path) as store:
        assert {run.engine_id: run.max_num_seqs for run in store.runs()} == {"told": 64, "looked-at": None}
        assert shape(store.path / "live.sqlite") == before


def test_every_version_has_one_migration():
    assert sorted(MIGRATIONS) == list(range(2, NEWEST + 1))
    with pytest.raises(ValueError, match=f"two migrations to version {NEWEST}"):
        migration(NEWEST)(lambda connection: None)
