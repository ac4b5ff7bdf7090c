"""What a store says, beside what the engine said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from witness import OF_STEPS, Totals, Witness

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Progress, Run
from farebox.storage.store import Store, open_store


class TortureError(AssertionError):
    """The store says something else than the engine did."""


def stored_totals(store: Store) -> Totals:
    """The same sums as a witness has, from a store's rows."""
    steps, shares, requests = (store.read(table) for table in (STEPS, SHARES, REQUESTS))
    paid = sum(a * b for a, b in zip(*(steps[name].to_pylist() for name in ("duration_ns", "gpus")), strict=True))
    expect("shares of a step are all of it", total(shares, "gpu_ns"), paid)
    return Totals(
        steps.num_rows, paid, *(total(steps, name) for name in ("prefill_tokens", "decode_tokens", "output_tokens")),
        shares.num_rows, *(total(shares, name) for name in ("rows", "output_tokens", "kv_block_ns", "attn")),
        requests.num_rows, total(requests, "prompt_tokens"), total(requests, "output_tokens"),
    )  # fmt: skip


def check_prefix(path: Any, witness: Witness) -> Progress:
    """A store holds the first so many steps and requests of the engine, whole, and books for all of that time."""
    with open_store(path) as store:
        found = store.runs()
        if not found:
            return Progress(0, 0, 0)
        (run,) = found
        progress = store.progress(run.engine_id, run.run_id)
        assert progress is not None
        expect(f"the first {progress}", stored_totals(store), witness.totals(progress.steps, progress.requests))
        check_ledger(store.read(LEDGER), run, stored_totals(store))
        expect("warnings", store.warnings, [])
    return progress


def check_ledger(ledger: pa.Table, run: Run, totals: Totals, missing: Sequence[str] = ()) -> None:
    """Every GPU-nanosecond of a run's wall has one owner, riders pay for the steps, and tokens are counted once."""
    expect("the ledger covers the wall", total(ledger, "gpu_ns"), (run.wall_end_ns - run.started_ns) * run.gpus)
    of = {row["account"]: row["gpu_ns_sum"] for row in _by_account(ledger)}
    riding = sum(of.get(account, 0) for account in ("tenant", "underfill", "overhead"))
    expect("riders pay for the steps", riding, totals.gpu_ns + run.load_ns * run.gpus)
    expect("tokens in the ledger", total(ledger, "output_tokens"), totals.output_tokens)
    expect("requests in the ledger", total(ledger, "requests"), totals.requests)


def unobserved_ns(ledger: pa.Table) -> int:
    """GPU time that nobody told about."""
    return total(ledger.filter(pc.field("account") == "unobserved"), "gpu_ns")


def check_rows_of(totals: Totals, whole: Totals) -> None:
    """Nothing is counted that was not told."""
    for name, found, told in zip(Totals._fields[OF_STEPS], totals, whole, strict=False):
        if found > told:
            raise TortureError(f"{name}: {found} of {told}")


def total(rows: pa.Table, name: str) -> int:
    """A column's sum, exact whatever its size; nulls count nothing."""
    return sum(value for value in rows.column(name).to_pylist() if value is not None)


def expect(what: str, found: object, told: object) -> None:
    """Both are the same, or it is an error."""
    if found != told:
        raise TortureError(f"{what}: the store says {found}, the engine {told}")


def _by_account(ledger: pa.Table) -> list[dict[str, Any]]:
    return ledger.group_by("account").aggregate([("gpu_ns", "sum")]).to_pylist()
