"""Records, Arrow tables and back."""

import pyarrow as pa
import pytest

from farebox.events import EVENT_TABLES, REQUESTS, RUNS, SETTING_TABLES, STEPS, Request


def request(**changes: object) -> Request:
    values = dict.fromkeys(Request._fields, 7) | dict.fromkeys(
        ("request_id", "engine_id", "run_id", "tenant_id", "tier", "model", "finish_reason"), "x"
    )
    return Request(**(values | {"prefix_ids": (1, 2)} | changes))


def test_records_survive_arrow():
    rows = [request(), request(first_token_ns=None, prefix_ids=None, prompt_tokens=2**62 + 1)]
    assert REQUESTS.from_arrow(REQUESTS.to_arrow(rows)) == rows


def test_an_empty_table_keeps_its_schema():
    for table in (*EVENT_TABLES, *SETTING_TABLES):
        assert table.to_arrow([]).schema.equals(table.schema)


def test_null_is_refused_where_it_has_no_meaning():
    with pytest.raises(ValueError, match=r"requests\.finished_ns is null in 1 rows"):
        REQUESTS.to_arrow([request(), request(finished_ns=None)])


def test_keys_and_times_are_columns():
    for table in (*EVENT_TABLES, *SETTING_TABLES):
        names = {column.name for column in table.columns}
        assert {*table.key, *table.sort, table.time} <= names


def test_units_travel_with_the_schema():
    assert STEPS.schema.field("duration_ns").metadata[b"unit"] == b"ns"
    assert RUNS.schema.field("gpu_uuids").type == pa.list_(pa.string())
