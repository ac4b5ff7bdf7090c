"""Schema versions: how a store reaches each one from the one before, in SQL that never changes again."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

Migration = Callable[[Connection], None]

BASE = 1
MIGRATIONS: dict[int, Migration] = {}
"""Schema version → how to get there from the version before."""


def migration(version: int, registry: dict[int, Migration] = MIGRATIONS) -> Callable[[Migration], Migration]:
    """Register how a store reaches `version` from the one before: `@migration(2)`; each runs in its own transaction."""

    def register(function: Migration) -> Migration:
        if version in registry:
            raise ValueError(f"two migrations to version {version}: {registry[version].__name__}, {function.__name__}")
        registry[version] = function
        return function

    return register


def _run(connection: Connection, statements: str) -> None:
    """Run SQL statements that semicolons set apart."""
    for statement in statements.split(";"):
        connection.exec_driver_sql(statement)


@migration(2)
def add_settings(connection: Connection) -> None:
    """Rates may be for a host or an engine; capacities, tenants, keys, prices, budgets and closings get tables."""
    _run(connection, _ADD_SETTINGS)


@migration(3)
def add_budget_states(connection: Connection) -> None:
    """How budgets stand gets a table; it fills with the next recording."""
    _run(connection, _ADD_BUDGET_STATES)


@migration(4)
def add_sources(connection: Connection) -> None:
    """Scraped intervals, readings of GPUs and hosts, the states of sources and the places in spools get tables."""
    _run(connection, _ADD_SOURCES)


@migration(5)
def add_history(connection: Connection) -> None:
    """Closings get versions and can be reopened; teams' new names and what was changed in settings get tables."""
    _run(connection, _ADD_HISTORY)


@migration(6)
def add_alerts(connection: Connection) -> None:
    """Alerts get a table."""
    _run(connection, _ADD_ALERTS)


@migration(7)
def let_requests_be_partly_known(connection: Connection) -> None:
    """Requests that were seen from outside their engine may lack counts."""
    _run(connection, _LET_REQUESTS_BE_PARTLY_KNOWN)


@migration(8)
def add_planning(connection: Connection) -> None:
    """Runs tell how else they schedule, so that they can be replayed as they were; advice gets a table."""
    _run(connection, _ADD_PLANNING)


_ADD_PLANNING = """
ALTER TABLE runs ADD COLUMN engine_args TEXT;
ALTER TABLE runs ADD COLUMN archived_10 BOOLEAN DEFAULT 0 NOT NULL;
UPDATE runs SET archived_10 = archived;
ALTER TABLE runs DROP COLUMN archived;
ALTER TABLE runs RENAME COLUMN archived_10 TO archived;
CREATE TABLE advice (
    rank BIGINT NOT NULL,
    lever TEXT NOT NULL,
    title TEXT NOT NULL,
    evidence TEXT NOT NULL,
    effect TEXT NOT NULL,
    confidence TEXT NOT NULL,
    command TEXT NOT NULL,
    currency TEXT,
    saved_micro BIGINT,
    freed_gpu_ns BIGINT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT NOT NULL,
    advised_ns BIGINT NOT NULL,
    PRIMARY KEY (rank)
)
"""


@migration(9)
def let_seats_be_unknown(connection: Connection) -> None:
    """Runs may not know their seats (they had 0 then); readings of GPUs tell who shares the device."""
    _allow_null(connection, "runs", "max_num_seqs")
    _run(connection, _LET_SEATS_BE_UNKNOWN)


@migration(10)
def add_checksums(connection: Connection) -> None:
    """Files of the archive get a checksum of their foot; those that are there have none."""
    _run(connection, "ALTER TABLE files ADD COLUMN foot_crc BIGINT")


def _allow_null(connection: Connection, table: str, column: str) -> None:
    """Let a column be null, whatever columns the table has by now; SQLite can do that by a new table only."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
        return
    made = connection.exec_driver_sql(
        "SELECT type, sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type DESC", (table,)
    ).all()
    columns = ", ".join(f'"{name}"' for _, name, *_ in connection.exec_driver_sql(f"PRAGMA table_info({table})"))
    [create] = [sql for kind, sql in made if kind == "table"]
    for statement in (
        f"ALTER TABLE {table} RENAME TO {table}_before",
        create.replace(f"{column} BIGINT NOT NULL", f"{column} BIGINT"),
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table}_before",
        f"DROP TABLE {table}_before",
        *(sql for kind, sql in made if kind == "index"),
    ):
        connection.exec_driver_sql(statement)


_LET_SEATS_BE_UNKNOWN = """
UPDATE runs SET max_num_seqs = NULL WHERE max_num_seqs = 0;
ALTER TABLE gpu ADD COLUMN active_ppm BIGINT;
ALTER TABLE gpu ADD COLUMN shared_by TEXT
"""

_ADD_SETTINGS = """
ALTER TABLE rates RENAME TO rates_1;
CREATE TABLE rates (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    currency TEXT NOT NULL,
    per_gpu_hour TEXT NOT NULL,
    terms TEXT,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT,
    note TEXT NOT NULL,
    PRIMARY KEY (scope, name, from_ns)
);
INSERT INTO rates
    SELECT CASE gpu_type WHEN '*' THEN 'any' ELSE 'gpu_type' END, CASE gpu_type WHEN '*' THEN '' ELSE gpu_type END,
        currency, per_gpu_hour, NULL, from_ns, to_ns, note
    FROM rates_1;
DROP TABLE rates_1;
CREATE TABLE capacities (
    host TEXT NOT NULL,
    gpu_type TEXT NOT NULL,
    gpus BIGINT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT,
    note TEXT NOT NULL,
    PRIMARY KEY (host, gpu_type, from_ns)
);
CREATE TABLE tenants (
    tenant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    team TEXT,
    cost_centre TEXT,
    reserved_milligpus BIGINT,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT,
    PRIMARY KEY (tenant_id, from_ns)
);
CREATE TABLE api_keys (
    key_hash TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    hint TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT,
    PRIMARY KEY (key_hash)
);
CREATE TABLE prices (
    model TEXT NOT NULL,
    tier TEXT NOT NULL,
    currency TEXT NOT NULL,
    unit_tokens BIGINT NOT NULL,
    input_price TEXT NOT NULL,
    cached_price TEXT,
    output_price TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT,
    note TEXT NOT NULL,
    PRIMARY KEY (model, tier, from_ns)
);
CREATE TABLE budgets (
    team TEXT NOT NULL,
    period TEXT NOT NULL,
    tz TEXT NOT NULL,
    currency TEXT NOT NULL,
    soft_micro BIGINT,
    hard_micro BIGINT,
    set_ns BIGINT NOT NULL,
    PRIMARY KEY (team, period, tz)
);
CREATE TABLE closings (
    period TEXT NOT NULL,
    tz TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT NOT NULL,
    closed_ns BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (from_ns, to_ns)
)
"""

_ADD_BUDGET_STATES = """
CREATE TABLE budget_states (
    team TEXT NOT NULL,
    period TEXT NOT NULL,
    tz TEXT NOT NULL,
    currency TEXT NOT NULL,
    spent_micro BIGINT,
    per_day_micro BIGINT,
    soft_micro BIGINT,
    hard_micro BIGINT,
    soft_day TEXT,
    hard_day TEXT,
    state TEXT NOT NULL,
    reason TEXT,
    seen_ns BIGINT NOT NULL,
    PRIMARY KEY (team, period, tz)
)
"""

_ADD_SOURCES = """
CREATE TABLE intervals (
    id INTEGER NOT NULL,
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    step_seq BIGINT NOT NULL,
    started_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL,
    running BIGINT,
    waiting BIGINT,
    kv_ppm TEXT,
    prompt_tokens BIGINT,
    cached_tokens BIGINT,
    output_tokens BIGINT,
    requests BIGINT,
    preemptions BIGINT,
    busy_ns BIGINT,
    histograms TEXT,
    missing TEXT,
    PRIMARY KEY (id),
    UNIQUE (engine_id, run_id, step_seq)
);
CREATE INDEX intervals_by_time ON intervals (started_ns);
CREATE TABLE gpu (
    id INTEGER NOT NULL,
    host TEXT NOT NULL,
    gpu_uuid TEXT NOT NULL,
    at_ns BIGINT NOT NULL,
    device BIGINT NOT NULL,
    name TEXT NOT NULL,
    parent_uuid TEXT,
    state TEXT NOT NULL,
    util_pct BIGINT,
    mem_used BIGINT,
    mem_total BIGINT,
    mem_kind TEXT,
    power_mw BIGINT,
    power_scope TEXT,
    power_limit_mw BIGINT,
    energy_mj BIGINT,
    energy_basis TEXT,
    sm_clock_mhz BIGINT,
    temperature_c BIGINT,
    missing TEXT,
    PRIMARY KEY (id)
);
CREATE INDEX gpu_by_time ON gpu (at_ns);
CREATE TABLE host (
    id INTEGER NOT NULL,
    host TEXT NOT NULL,
    at_ns BIGINT NOT NULL,
    cpus BIGINT NOT NULL,
    cpu_permille BIGINT,
    mem_used BIGINT,
    mem_total BIGINT,
    PRIMARY KEY (id)
);
CREATE INDEX host_by_time ON host (at_ns);
CREATE TABLE source_states (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    since_ns BIGINT NOT NULL,
    seen_ns BIGINT NOT NULL,
    why TEXT,
    PRIMARY KEY (source, since_ns)
);
CREATE TABLE spools (
    writer TEXT NOT NULL,
    segment BIGINT NOT NULL,
    "offset" BIGINT NOT NULL,
    PRIMARY KEY (writer)
)
"""

_ADD_HISTORY = """
ALTER TABLE closings RENAME TO closings_4;
CREATE TABLE closings (
    period TEXT NOT NULL,
    tz TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    to_ns BIGINT NOT NULL,
    version BIGINT NOT NULL,
    closed_ns BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    content TEXT NOT NULL,
    reopened_ns BIGINT,
    reason TEXT,
    PRIMARY KEY (from_ns, to_ns, version)
);
INSERT INTO closings
    SELECT period, tz, from_ns, to_ns, 1, closed_ns, content_hash, content, NULL, NULL FROM closings_4;
DROP TABLE closings_4;
CREATE TABLE team_renames (
    team TEXT NOT NULL,
    name TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    recorded_ns BIGINT NOT NULL,
    PRIMARY KEY (team, from_ns)
);
CREATE TABLE changes (
    changed_ns BIGINT NOT NULL,
    setting TEXT NOT NULL,
    about TEXT NOT NULL,
    from_ns BIGINT NOT NULL,
    before TEXT NOT NULL,
    after TEXT,
    reason TEXT NOT NULL,
    PRIMARY KEY (changed_ns, setting, about, from_ns)
)
"""

_LET_REQUESTS_BE_PARTLY_KNOWN = """
DROP INDEX requests_by_time;
ALTER TABLE requests RENAME TO requests_6;
CREATE TABLE requests (
    id INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    engine_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    model TEXT NOT NULL,
    arrived_ns BIGINT NOT NULL,
    scheduled_ns BIGINT,
    first_token_ns BIGINT,
    finished_ns BIGINT NOT NULL,
    prompt_tokens BIGINT,
    cached_tokens BIGINT,
    output_tokens BIGINT,
    reasoning_tokens BIGINT,
    max_tokens BIGINT,
    finish_reason TEXT NOT NULL,
    preemptions BIGINT,
    prefix_ids TEXT,
    gpu_ns BIGINT,
    PRIMARY KEY (id),
    UNIQUE (engine_id, run_id, request_id)
);
INSERT INTO requests SELECT * FROM requests_6;
DROP TABLE requests_6;
CREATE INDEX requests_by_time ON requests (finished_ns)
"""

_ADD_ALERTS = """
CREATE TABLE alerts (
    rule TEXT NOT NULL,
    about TEXT NOT NULL,
    since_ns BIGINT NOT NULL,
    ended_ns BIGINT,
    text TEXT NOT NULL,
    PRIMARY KEY (rule, about, since_ns)
)
"""
