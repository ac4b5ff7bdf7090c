"""Roll-ups: the same sums as counting every row, however the rows are cut into batches."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing import rollup
from farebox.costing.rollup import roll_up

BORDERS = [0, 86_400, 90_000, 200_000]
KEYS, SUMS = ("account", "tenant_id"), ("tokens", "gpu_ns")

row = st.tuples(
    st.integers(-10, 210_000),
    st.sampled_from(["tenant", "idle", ""]),
    st.text(max_size=2),
    st.integers(-(2**40), 2**58),
    st.integers(0, 9),
)


def batch_of(rows, coded=False):
    at, accounts, tenants, gpu_ns, tokens = zip(*rows, strict=True) if rows else ((),) * 5
    names = [pa.array(values, pa.string()) for values in (accounts, tenants)]
    numbers = [pa.array(values, pa.int64()) for values in (at, gpu_ns, tokens)]
    names = [column.dictionary_encode() for column in names] if coded else names
    return pa.record_batch([*names, *numbers], names=[*KEYS, "at", "gpu_ns", "tokens"])


def counted(rows):
    tokens, gpu_ns = Counter(), Counter()
    for at, account, tenant, ns, count in rows:
        start = max((border for border in BORDERS if border <= at), default=BORDERS[-1])
        if start != BORDERS[-1]:
            tokens[start, account, tenant] += count
            gpu_ns[start, account, tenant] += ns
    return sorted((*key, tokens[key], gpu_ns[key]) for key in gpu_ns)


def rows_of(table):
    return list(zip(*(table[name].to_pylist() for name in ("at", *KEYS, *SUMS)), strict=True))


@tries(40)
@given(st.lists(st.tuples(st.lists(row, max_size=12), st.booleans()), max_size=6))
def test_sums_are_exact_for_any_batches(parts):
    rows = [row for part, _ in parts for row in part]
    batches = [batch_of(part, coded) for part, coded in parts]
    table = roll_up(batches, KEYS, SUMS, "at", BORDERS)
    assert rows_of(table) == counted(rows)
    assert table.schema.names == ["at", *KEYS, *SUMS]


@tries(40)
@given(st.lists(st.lists(row, max_size=12), max_size=6))
def test_more_groups_than_slots_and_more_sums_than_are_kept_change_nothing(parts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollup, "SLOTS", 2)
        patch.setattr(rollup, "ROWS_KEPT", 3)
        table = roll_up([batch_of(part) for part in parts], KEYS, SUMS, "at", BORDERS)
    assert rows_of(table) == counted([row for part in parts for row in part])


def test_without_keys_there_is_one_sum_for_each_period():
    rows = [(5, "a", "x", 2**53 + 1, 1), (86_399, "b", "y", 1, 2), (86_400, "a", "x", 7, 3)]
    table = roll_up([batch_of(rows)], (), SUMS, "at", BORDERS)
    assert table.to_pylist() == [
        {"at": 0, "tokens": 3, "gpu_ns": 2**53 + 2},
        {"at": 86_400, "tokens": 3, "gpu_ns": 7},
    ]


def test_what_is_unknown_is_not_summed_as_nothing():
    batch = batch_of([(5, "a", "x", 1, 1)])
    for name in ("at", "account", "gpu_ns"):
        index = batch.schema.get_field_index(name)
        unknown = batch.set_column(index, name, pa.nulls(1, batch.schema.field(name).type))
        with pytest.raises(ValueError, match=f"{name} is unknown in 1 rows"):
            roll_up([unknown], KEYS, SUMS, "at", BORDERS)
