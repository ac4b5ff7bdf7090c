"""Proves the plugin on a real vLLM: what the spool tells is what the server counted and what the clients were told.

    make test-vllm          (or: python check.py FOLDER, with the Python of an environment that has vLLM and the plugin)

Four servers, one after the other: as vLLM comes, with two API servers and tenants by API key, with two and a KV cache
so small that requests are preempted, and with drafts. Each under load with aborted streams, shared prefixes and n = 2.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from farebox_vllm.spool.lines import decode, segment_path, segments
from load import TENANTS, Call, run
from server import PORT, Server
from tiny_llama import make


class Case(NamedTuple):
    """One server and its load."""

    name: str
    options: tuple[str, ...]
    requests: int
    prompts: tuple[int, ...] = (8, 40, 200, 700)
    """Lengths in words."""
    outputs: tuple[int, ...] = (1, 4, 32, 128)
    by_key: bool = False
    """Tenants come from API keys; and the server is given the time to end in order."""
    preempts: bool = False
    drafts: bool = False


TWO_SERVERS = ("--api-server-count", "2", "--shutdown-timeout", "20")
FEW_BLOCKS = ("--block-size", "32", "--num-gpu-blocks-override", "66")
DRAFTS = 3
DRAFTING = {"method": "ngram", "num_speculative_tokens": DRAFTS, "prompt_lookup_min": 1, "prompt_lookup_max": 2}
CASES = (
    Case("as it comes", (), 90),
    Case("two API servers, tenants by key", TWO_SERVERS, 90, by_key=True),
    Case(
        "two API servers, a tiny KV cache",
        FEW_BLOCKS + TWO_SERVERS,
        36,
        prompts=(8, 40, 100),
        outputs=(256,),
        preempts=True,
    ),
    Case("with drafts", ("--speculative-config", json.dumps(DRAFTING)), 45, drafts=True),
)


class Told(NamedTuple):
    """What a spool tells."""

    run: dict[str, Any]
    steps: list[dict[str, Any]]
    cells: list[list[dict[str, Any]]]
    requests: list[dict[str, Any]]
    beat_ns: int
    dropped: int


def read(spool: Path) -> Told:
    """Read all of the one spool that a server wrote."""
    (folder,) = spool.iterdir()
    lines = [line for number in segments(folder) for line in segment_path(folder, number).read_bytes().splitlines(True)]
    events = [decode(line) for line in lines]
    return Told(
        [event["run"] for event in events if "run" in event][-1],
        [event["step"] for event in events if "step" in event],
        [event["cells"] for event in events if "step" in event],
        [event["request"] for event in events if "request" in event],
        max(event["beat"]["at_ns"] for event in events if "beat" in event),
        sum(event.get("dropped", 0) for event in events),
    )


def total(rows: list[dict[str, Any]], name: str) -> int:
    """The sum of a field."""
    return sum(row[name] for row in rows)


def check(case: Case, told: Told, counters: dict[str, float], calls: list[Call]) -> list[str]:
    """Compare; gives what is wrong."""
    wrong: list[str] = []

    def same(what: str, found: object, expected: object) -> None:
        print(
            f"  {'ok ' if found == expected else 'BAD'} {what}: {found}"
            + ("" if found == expected else f", not {expected}")
        )
        if found != expected:
            wrong.append(what)

    steps, requests = told.steps, told.requests
    again = total(steps, "recomputed_tokens")
    fresh = total(steps, "prefill_tokens") - again
    generated, decodes = total(steps, "output_tokens"), total(steps, "decode_tokens")
    computed = int(counters["vllm:prompt_tokens_by_source/local_compute"])
    same("prompt rows = the server's prompt tokens computed here", fresh, computed)
    same("cached tokens = the server's", total(steps, "cached_tokens"), int(counters["vllm:prompt_tokens_cached"]))
    lasts = sum(request["output_tokens"] > 0 for request in requests)
    rejected = total(steps, "rejected_tokens")
    in_vain = decodes - rejected - (generated - lasts)
    ended = sum(request["finish_reason"] == "abort" for request in requests)
    print(
        f"      {computed} prompt + {generated} generated − {lasts} last ones + {again} again"
        f" + {rejected} rejected + {in_vain} in vain = {fresh + decodes + again} rows"
    )
    unheard = generated - int(counters["vllm:generation_tokens"])
    print(f"      tokens kept {generated}, of which the server did not count {unheard}: their clients had hung up")
    same("tokens kept = the server's and those of clients that had hung up", 0 <= unheard <= ended, True)
    cut_off = lasts * DRAFTS if case.drafts else 0
    same(
        "rows in vain were in flight when a client hung up, or cut off at the end",
        0 <= in_vain <= ended + cut_off,
        True,
    )
    if case.drafts:
        drafted, accepted = (int(counters[f"vllm:spec_decode_num_{what}_tokens"]) for what in ("draft", "accepted"))
        same("rejected drafts = the server's", rejected, drafted - accepted)
        same("some were rejected", rejected > 0, True)
    same("preemptions = the server's", total(steps, "preemptions"), int(counters["vllm:num_preemptions"]))
    same("there were preemptions", total(steps, "preemptions") > 0, case.preempts)
    cells = [cell for each in told.cells for cell in each]
    same("the cells' rows are the steps'", total(cells, "rows"), total(steps, "prefill_tokens") + decodes)
    blocks = [
        total(each, "kv_block_ns") - step["kv_blocks_used"] * step["duration_ns"]
        for step, each in zip(steps, told.cells, strict=True)
    ]
    same("KV blocks of the cells are the pool's", set(blocks), {0})
    _check_requests(same, told, calls)
    _check_time(same, told, is_patient=case.by_key)
    same("nothing was dropped", told.dropped, 0)
    return wrong


def _check_requests(same: Any, told: Told, calls: list[Call]) -> None:
    requests = told.requests
    same(
        "a request each, ids unique",
        len({request["request_id"] for request in requests}),
        sum(call.answers for call in calls),
    )
    reasons = Counter(request["finish_reason"] for request in requests)
    same("aborts are those who hung up", reasons["abort"], sum(call.hangs_up for call in calls))
    for tenant in TENANTS:
        theirs = [
            request for request in requests if request["tenant_id"] == tenant and request["finish_reason"] != "abort"
        ]
        told_to = [call for call in calls if call.tenant == tenant and not call.hangs_up]
        same(
            f"{tenant}: prompt tokens as the clients were told",
            total(theirs, "prompt_tokens"),
            sum(c.prompt_tokens * c.answers for c in told_to),
        )
        same(
            f"{tenant}: output tokens as the clients were told",
            total(theirs, "output_tokens"),
            sum(c.output_tokens for c in told_to),
        )
        all_theirs = [request for request in requests if request["tenant_id"] == tenant]
        in_cells = sum(cell["output_tokens"] for each in told.cells for cell in each if cell["tenant_id"] == tenant)
        same(f"{tenant}: output tokens of its cells are its requests'", in_cells, total(all_theirs, "output_tokens"))
    same("nobody else rode", {request["tenant_id"] for request in requests}, set(TENANTS))
    same("arrived ≤ scheduled ≤ first token ≤ finished", all(_in_order(request) for request in requests), True)


def _check_time(same: Any, told: Told, *, is_patient: bool) -> None:
    steps = told.steps
    same("steps without holes", sum(step["step_seq"] == number for number, step in enumerate(steps)), len(steps))
    ends = [step["started_ns"] + step["duration_ns"] for step in steps]
    gaps = [after["started_ns"] - end - after["idle_before_ns"] for end, after in zip(ends, steps[1:], strict=False)]
    same("steps and idle time tile the clock", set(gaps), {0})
    print(f"      the end of the run was told: {'ended_ns' in told.run}")
    same("the run ends after its last step", told.run.get("ended_ns", told.beat_ns) >= ends[-1], True)
    if is_patient:
        same("the end of the run was told", "ended_ns" in told.run, True)


def _in_order(request: dict[str, Any]) -> bool:
    known = [request[name] for name in ("arrived_ns", "scheduled_ns", "first_token_ns", "finished_ns")]
    known = [instant for instant in known if instant is not None]
    return known == sorted(known)


def try_case(case: Case, folder: Path, model: Path) -> list[str]:
    """Start a server, load it, end it, and compare."""
    keys = {tenant: f"sk-{secrets.token_hex(16)}" for tenant in TENANTS} if case.by_key else {}
    folder.mkdir(parents=True)
    file = folder / "keys.json"
    file.write_text(json.dumps({sha256(key.encode()).hexdigest(): tenant for tenant, key in keys.items()}))
    began = time.monotonic()
    with Server(folder, model, *case.options, keys=file if keys else None) as server:
        loaded = time.monotonic()
        calls = run(PORT, case.requests, keys, case.prompts, case.outputs)
        served = time.monotonic()
        time.sleep(2)
        counters = server.counters()
    print(f"{case.name}: up in {loaded - began:.0f} s, {len(calls)} calls in {served - loaded:.0f} s")
    return check(case, read(server.spool), counters, calls)


def main() -> int:
    """Try all cases, or those whose names are given; 1 if anything is wrong."""
    folder = Path(sys.argv[1]).resolve()
    model = folder / "tiny-llama"
    if not model.is_dir():
        make(model)
    runs = folder / time.strftime("%Y%m%dT%H%M%S")
    cases = [case for case in CASES if not sys.argv[2:] or case.name in sys.argv[2:]]
    wrong = [fault for number, case in enumerate(cases) for fault in try_case(case, runs / str(number), model)]
    print(f"{len(wrong)} things are wrong: see {runs}" if wrong else "all is as it should be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
