"""`farebox import`: what people have, into a store, each line once."""

import csv
import gzip
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from farebox.cli.app import app
from farebox.collector.imports.formats import detect
from farebox.events import GPU_SAMPLES, LEDGER, REQUESTS
from farebox.storage.store import open_store

CASES = Path(__file__).resolve().parents[1] / "cases"
MAY = 1_777_593_600  # 2026-05-01T00:00:00Z
HEAD = [
    "request_id", "call_type", "api_key", "spend", "total_tokens", "prompt_tokens", "completion_tokens", "startTime",
    "endTime", "completionStartTime", "model", "user", "metadata", "cache_hit", "team_id", "end_user", "status",
]  # fmt: skip


def spend_log(number, **changes):
    """A row of LiteLLM's table, as its database writes it."""
    row = dict.fromkeys(HEAD, "") | {
        "request_id": f"chatcmpl-{number}",
        "call_type": "acompletion",
        "prompt_tokens": 100 + number,
        "completion_tokens": 10,
        "total_tokens": 110 + number,
        "startTime": f"2026-05-01 12:00:{number:02}.125",
        "completionStartTime": f"2026-05-01 12:00:{number:02}.250",
        "endTime": f"2026-05-01 12:00:{number:02}.5",
        "model": "llama-3-8b",
        "metadata": "{}",
        "cache_hit": "False",
        "team_id": "red" if number % 2 else "blue",
        "status": "success",
    }
    return row | changes


def write_csv(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def run(tmp_path):
    """Import files into one store; returns what was told of each."""

    def importing(*files, flags=(), code=0):
        command = ["import", *map(str, files), "--store", str(tmp_path / "s"), "--json", *flags]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout) if code == 0 else done.output

    return importing


@pytest.fixture
def stored(tmp_path):
    """What the store has: requests, ledger or samples."""

    def read(table):
        with open_store(tmp_path / "s") as store:
            return table.from_arrow(store.read(table))

    return read


def totals(lines):
    """Prompt, cached and output tokens and requests in the ledger, by tenant."""
    found = {}
    for line in lines:
        assert line.gpu_ns == 0
        counts = (line.prompt_tokens, line.cached_tokens, line.output_tokens, line.requests)
        found[line.tenant_id] = tuple(map(sum, zip(found.get(line.tenant_id, (0,) * 4), counts, strict=True)))
    return found


def test_spend_logs_as_csv_and_json_are_the_same_and_count_once(tmp_path, run, stored):
    details = {"additional_usage_values": {"prompt_tokens_details": {"cached_tokens": 64}}}
    rows = [
        spend_log(1, metadata=json.dumps(details)),
        spend_log(2),
        spend_log(3, cache_hit="True"),
        spend_log(4, status="failure", prompt_tokens=0, completion_tokens=0,
                  metadata='{"error_information": {"error_code": "429"}}'),
        spend_log(5, team_id=""),
    ]  # fmt: skip
    (told,) = run(write_csv(tmp_path / "logs.csv", rows))
    assert (told["format"], told["requests"], told["rejected"]) == ("litellm", 4, 0)
    assert (told["saved_requests"], told["saved_tokens"]) == (1, 113)
    found = {request.request_id: request for request in stored(REQUESTS)}
    first = found["chatcmpl-1"]
    assert (first.tenant_id, first.prompt_tokens, first.cached_tokens, first.output_tokens) == ("red", 101, 64, 10)
    noon = (MAY + 12 * 3600 + 1) * 10**9
    assert first[6:9] == (noon + 125_000_000, None, noon + 250_000_000)
    assert first.finished_ns == noon + 500_000_000
    assert found["chatcmpl-2"].cached_tokens is None
    assert (found["chatcmpl-4"].finish_reason, found["chatcmpl-4"].prompt_tokens) == ("rejected", None)
    whole = totals(stored(LEDGER))
    assert whole == {"red": (101, 64, 10, 1), "blue": (102, 0, 10, 2), "unknown": (105, 0, 10, 1)}
    as_json = tmp_path / "logs.json"
    as_json.write_text(json.dumps([row | {"metadata": json.loads(row["metadata"])} for row in rows], indent=1))
    (again,) = run(as_json)
    assert (again["requests"], again["repeated"]) == (0, 4)
    assert totals(stored(LEDGER)) == whole


def test_a_longer_export_adds_what_is_new_and_another_column_may_name_the_tenant(tmp_path, run, stored):
    rows = [spend_log(number, end_user=f"u{number}") for number in range(6)]
    run(write_csv(tmp_path / "a.csv", rows[:4]), flags=["--tenant-by", "end_user"])
    (told,) = run(write_csv(tmp_path / "b.csv", rows), flags=["--tenant-by", "end_user"])
    assert (told["requests"], told["repeated"]) == (2, 4)
    assert sorted(totals(stored(LEDGER))) == [f"u{number}" for number in range(6)]


def test_bad_rows_are_named_and_kept_and_the_others_go_on(tmp_path, run, stored):
    rows = [
        spend_log(1),
        spend_log(2, prompt_tokens="many"),
        spend_log(3, endTime="yesterday"),
        spend_log(4, startTime="2026-05-02 00:00:00"),
        spend_log(5, request_id=""),
        spend_log(6),
    ]
    path = write_csv(tmp_path / "logs.csv", rows)
    with path.open("a") as file:
        file.write("cut,off\n")
    (told,) = run(path)
    assert (told["requests"], told["rejected"]) == (2, 5)
    kept = [json.loads(line) for line in Path(told["rejects"]).read_text().splitlines()]
    assert [(row["line"], row["why"]) for row in kept] == [
        (3, "prompt_tokens: 'many' is not a count"),
        (4, "endTime: 'yesterday' is not a time"),
        (5, "it ends before it begins"),
        (6, "request_id is missing"),
        (8, "2 cells under 17 columns"),
    ]
    assert "chatcmpl-2" in kept[0]["text"]
    assert len(stored(REQUESTS)) == 2


def test_a_known_request_with_other_tokens_is_rejected(tmp_path, run, stored):
    run(write_csv(tmp_path / "a.csv", [spend_log(1)]))
    (told,) = run(write_csv(tmp_path / "b.csv", [spend_log(1, prompt_tokens=999), spend_log(2)]))
    assert (told["requests"], told["rejected"]) == (1, 1)
    assert "imported before with other tokens" in Path(told["rejects"]).read_text()


def buckets(*results, start=MAY):
    return {"object": "bucket", "start_time": start, "end_time": start + 60, "results": list(results)}


def result(project, requests, tokens, cached, output, **more):
    return {
        "object": "organization.usage.completions.result",
        "input_tokens": tokens,
        "input_cached_tokens": cached,
        "output_tokens": output,
        "num_model_requests": requests,
        "project_id": project,
        "model": "gpt-x",
        "batch": None,
        **more,
    }


def test_openai_buckets_count_once_and_other_numbers_for_the_same_time_are_rejected(tmp_path, run, stored):
    page = {
        "object": "page",
        "data": [
            buckets(result("p1", 5, 1000, 800, 500), result("p2", 1, 10, 0, 2, batch=True)),
            buckets(result("p1", 2, 20, 0, 4), start=MAY + 60),
            buckets(start=MAY + 120),
        ],
    }
    path = tmp_path / "usage.json"
    path.write_text(json.dumps(page))
    (told,) = run(path)
    assert (told["format"], told["requests"], told["tokens"]) == ("openai", 8, 1536)
    whole = totals(stored(LEDGER))
    assert whole == {"p1": (1020, 800, 504, 7), "p2": (10, 0, 2, 1)}
    assert {line.tier for line in stored(LEDGER)} == {"standard", "batch"}
    rows = [{"start_time": b["start_time"], "end_time": b["end_time"], **r} for b in page["data"] for r in b["results"]]
    (again,) = run(write_csv(tmp_path / "usage.csv", rows))
    assert (again["requests"], again["repeated"]) == (0, 3)
    page["data"][1]["results"][0]["output_tokens"] = 5
    path.write_text(json.dumps(page))
    (other,) = run(path)
    assert (other["repeated"], other["rejected"]) == (2, 1)
    assert totals(stored(LEDGER)) == whole


def test_a21_words_where_numbers_are_expected_are_kept_as_reasons(run, stored):
    (told,) = run(CASES / "A21.csv", flags=["--host", "gpu7", "--rejected", os.devnull])
    assert (told["format"], told["samples"], told["rejected"]) == ("nvidia-smi", 4, 0)
    found = {sample.gpu_uuid: sample for sample in stored(GPU_SAMPLES)}
    a, b, c, d = (found[f"GPU-{letter * 4}"] for letter in "abcd")
    assert (a.host, a.device, a.mem_total, a.mem_used) == ("gpu7", 0, 40960 * 2**20, 900 * 2**20)
    assert (a.util_pct, a.power_mw, a.temperature_c, a.state) == (12, 61_200, 34, "ok")
    assert (b.util_pct, b.mem_used, b.power_mw) == (None, None, 87_000)
    assert json.loads(b.missing)["mem_total"] == "Insufficient Permissions"
    assert (c.util_pct, c.power_mw, json.loads(c.missing)["power_mw"]) == (0, None, "Not Supported")
    assert (d.state, d.temperature_c) == ("lost", None)
    (again,) = run(CASES / "A21.csv", flags=["--host", "gpu7"])
    assert (again["samples"], again["repeated"]) == (0, 4)


def test_a_loop_of_nvidia_smi_without_units_is_read_in_the_hosts_zone(tmp_path, run, stored):
    path = tmp_path / "smi.csv"
    row = "2026/05/01 14:00:0{}.000, GPU-a, 97, 1024, 81920, {}\n"
    head = "timestamp, uuid, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw.instant [W]\n"
    path.write_text(head + row.format(1, 300.5) + head + row.format(2, "oops") + row.format(3, 300.25))
    (told,) = run(path, flags=["--tz", "Europe/Berlin"])
    assert (told["samples"], told["rejected"]) == (2, 1)
    assert "power.draw: 'oops' is not a number" in Path(told["rejects"]).read_text()
    samples = sorted(stored(GPU_SAMPLES), key=lambda sample: sample.at_ns)
    assert [sample.at_ns for sample in samples] == [(MAY + 12 * 3600 + s) * 10**9 for s in (1, 3)]
    assert [sample.power_mw for sample in samples] == [300_500, 300_250]


def test_b25_b27_c10_c21_c22_c26_c30_plain_logs(run, stored):
    names = ["B25", "B27", "C10", "C21", "C22", "C26", "C30"]
    files = [CASES / f"{name}.events.jsonl" for name in names]
    told = {Path(each["file"]).name[:3]: each for each in run(*files, flags=["--rejected", os.devnull], code=0)}
    assert {each["format"] for each in told.values()} == {"jsonl"}
    by_model = Counter()
    for line in stored(LEDGER):
        by_model[line.model] += line.output_tokens
    assert [by_model[name] for name in ("base", "lora-a", "lora-b")] == [20_000, 50_000, 30_000]
    requests = {request.request_id: request for request in stored(REQUESTS)}
    assert requests["n4"][10:13] == (10, None, 56)
    assert told["B27"]["requests"] == 1
    assert (requests["A"].output_tokens, requests["B"].output_tokens) == (1360, 1360)
    assert (told["C21"]["requests"], told["C21"]["repeated"]) == (2, 1)
    assert requests["1"].finish_reason == "rejected"
    assert (told["C22"]["tokens"], told["C26"]["requests"]) == (50_000, 0)
    assert (told["C26"]["saved_requests"], told["C26"]["saved_tokens"]) == (1, 1100)
    assert told["C30"]["rejected"] == 1  # an id that B25 has used, with other tokens
    (odd,) = run(CASES / "C30.events.jsonl", flags=["--engine", "c30"])
    assert (odd["requests"], odd["odd"]) == (1, 1)
    assert {r.cached_tokens for r in stored(REQUESTS) if r.engine_id == "c30"} == {123_000}


LOG = """\
(APIServer pid=7) INFO 05-01 12:00:01 [logger.py:42] Received request cmpl-1-0: prompt: 'hi', params: \
SamplingParams(n=1, max_tokens=16, min_tokens=0), prompt_token_ids: [1, 2, 3], \
prompt_embeds shape: None, lora_request: None.
DEBUG 05-01 12:00:02 [logger.py:40] Request chatcmpl-t.acme.9 details: prompt: 'x', prompt_token_ids: [5, 6], \
prompt_embeds shape: None.
INFO 05-01 12:00:02 [logger.py:52] Received request chatcmpl-t.acme.9: params: SamplingParams(max_tokens=None), \
lora_request: LoRARequest(lora_name='sql', lora_int_id=1).
INFO 05-01 12:00:03 [async_llm.py:99] Added request cmpl-1-0.
INFO 05-01 12:00:04 [logger.py:70] Generated response cmpl-1-0: output: ', finish_reason: x', output_token_ids: \
[7, 8, 9, 10], finish_reason: length
INFO 05-01 12:00:05 [logger.py:70] Generated response chatcmpl-t.acme.9 (streaming delta): output: 'a', \
output_token_ids: [1], finish_reason: None
INFO 05-01 12:00:06 [logger.py:70] Generated response chatcmpl-t.acme.9 (streaming complete): output: 'ab', \
output_token_ids: None, finish_reason: streaming_complete
INFO 05-01 12:00:07 [logger.py:52] Received request cmpl-2-0: params: SamplingParams(max_tokens=1), lora_request: None.
"""


def test_a_log_of_vllm_tells_lengths_ends_and_adapters(tmp_path, run, stored):
    path = tmp_path / "vllm.log"
    path.write_text(LOG)
    os.utime(path, (MAY + 86_400, MAY + 86_400))
    (told,) = run(path)
    assert (told["format"], told["requests"], told["rejected"]) == ("vllm", 2, 1)
    assert "no answer is logged" in Path(told["rejects"]).read_text()
    one, two = sorted(stored(REQUESTS), key=lambda request: request.finished_ns)
    assert (one.prompt_tokens, one.output_tokens, one.finish_reason, one.max_tokens) == (3, 4, "length", 16)
    assert (one.arrived_ns, one.finished_ns) == tuple((MAY + 12 * 3600 + s) * 10**9 for s in (1, 4))
    assert (two.tenant_id, two.model, two.prompt_tokens, two.output_tokens) == ("acme", "sql", 2, None)


def test_traces_are_told_by_their_content(tmp_path, run, stored):
    azure = tmp_path / "trace_conv.csv"
    azure.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
    mooncake = tmp_path / "toolagent.jsonl"
    mooncake.write_text('{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n')
    told = run(azure, mooncake)
    assert [(each["format"], each["requests"]) for each in told] == [("azure", 1), ("mooncake", 1)]
    assert totals(stored(LEDGER)) == {"conv": (374, 0, 44, 1), "toolagent": (6955, 0, 52, 1)}
    assert [each["repeated"] for each in run(azure, mooncake)] == [1, 1]


def test_the_azure_trace_counts_as_it_says(shared, run, stored):
    (told,) = run(shared / "data/traces/AzureLLMInferenceTrace_code.csv")
    assert (told["requests"], told["tokens"]) == (8_819, 18_059_974 + 245_896)
    assert totals(stored(LEDGER)) == {"code": (18_059_974, 0, 245_896, 8_819)}


def test_a_log_without_times_counts_once_when_it_grows_or_is_rotated(tmp_path, run, stored):
    log, trace = tmp_path / "answers.jsonl", tmp_path / "toolagent.jsonl"
    one, two = ({"request_id": name, "tenant": "red", "prompt_tokens": 7, "completion_tokens": 2} for name in "ab")
    log.write_text(json.dumps(one) + "\n")
    trace.write_text('{"timestamp": 5, "input_length": 60, "output_length": 5, "hash_ids": [46]}\n')
    for path in (log, trace):
        os.utime(path, (MAY, MAY))
    run(log, trace)
    log.write_text(json.dumps(one) + "\n" + json.dumps(two) + "\n")
    packed = tmp_path / "answers.jsonl.1.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    packed_trace = tmp_path / "toolagent.jsonl.gz"
    packed_trace.write_bytes(gzip.compress(trace.read_bytes()))
    for path in (log, trace, packed, packed_trace):
        os.utime(path, (MAY + 9 * 86_400,) * 2)
    told = run(log, trace, packed, packed_trace)
    assert [(each["requests"], each["repeated"]) for each in told] == [(1, 1), (0, 1), (0, 2), (0, 1)]
    assert totals(stored(LEDGER)) == {"red": (14, 0, 4, 2), "toolagent": (60, 0, 5, 1)}
    changed = tmp_path / "changed.jsonl"
    changed.write_text(json.dumps(two) + "\n" + json.dumps(one | {"prompt_tokens": 8}) + "\n")
    assert [(each["requests"], each["rejected"]) for each in run(changed)] == [(0, 1)]
    packed.write_bytes(packed.read_bytes()[:-12])
    assert f"{packed}: cannot be read" in run(packed, flags=["--format", "jsonl"], code=2)


def test_a_tenant_is_a_short_printable_text(tmp_path, run, stored):
    path = tmp_path / "odd.jsonl"
    names = ["red", "x" * 129, "a\x1b[31m", "\u202eder", {"id": 1}]
    row = {"prompt_tokens": 1, "completion_tokens": 1}
    path.write_text("".join(json.dumps(row | {"request_id": str(n), "tenant": t}) + "\n" for n, t in enumerate(names)))
    (told,) = run(path)
    assert totals(stored(LEDGER)) == {"red": (1, 0, 1, 1), "unknown": (3, 0, 3, 3)}
    (reason,) = map(json.loads, Path(told["rejects"]).read_text().splitlines())
    assert (reason["line"], reason["why"]) == (5, "tenant: {'id': 1} is not a text")


def test_what_is_no_log_is_refused(tmp_path, run):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    assert "its format is not known; say it with --format" in run(path, code=2)
    assert "no such file" in run(tmp_path / "none.csv", code=2)
    assert "no such zone" in run(path, flags=["--tz", "Mars"], code=2)
    path.write_text("")
    assert "format is not known" in run(path, code=2)


def test_every_format_is_offered():
    from farebox.cli.importing import FORMATS
    from farebox.collector.imports.formats import NAMES

    assert set(FORMATS) == set(NAMES)
    assert detect(CASES / "A21.csv").name == "nvidia-smi"


def test_imported_tokens_are_priced_by_the_report(tmp_path, run):
    run(write_csv(tmp_path / "a.csv", [spend_log(1), spend_log(2)]))
    done = CliRunner().invoke(app, ["report", str(tmp_path / "s"), "--format", "json"])
    assert done.exit_code == 0, done.output
    lines = {line["tenant"]: line for line in json.loads(done.stdout)["lines"] if line.get("tenant")}
    assert {name: line["prompt_tokens"] for name, line in lines.items()} == {"red": 101, "blue": 102}
