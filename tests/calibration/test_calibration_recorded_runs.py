"""Two recorded vLLM runs through the engine, with constants found on requests 0–149, judged on 150–299."""

from dataclasses import replace

import pytest

from farebox.calibration.engine_args import read_engine_args
from farebox.calibration.judge import part_errors, run_errors
from farebox.calibration.recorded import read_recording
from farebox.calibration.replayed import replay_recorded
from farebox.calibration.setup import config_of, replica_of
from farebox.roofline import StepModel, to_units

SECONDS = {
    "RTX4090_Llama-3.1-8B": (1.65e-3, 18.0e-3, 88.92e-6, 0.0, 0.136e-6, 0.002e-6, 8.93e-3),
    "RTXPRO6000_Qwen3-32B": (3.3e-3, 21.27e-3, 101.6e-6, 50.2e-6, 0.201e-6, 0.003e-6, 45.16e-3),
}
"""o, w, c, r, per token of KV, per pair, p."""
COLD_NS = {"RTX4090_Llama-3.1-8B": 360_000_000, "RTXPRO6000_Qwen3-32B": 55_000_000}
LIMITS = {
    "RTX4090_Llama-3.1-8B": {"tpot": 0.02, "ttft": 0.015, "quantiles": 0.03, "makespan": 0.03},
    "RTXPRO6000_Qwen3-32B": {"tpot": 0.03, "ttft": 0.04, "quantiles": 0.06, "makespan": 0.05},
}


@pytest.mark.parametrize("name", list(SECONDS))
def test_a_replay_is_true_to_a_real_vllm(shared, name):
    folder = shared / "data" / "vllm_runs" / name
    files = [folder / file for file in ("requests.jsonl", "prefix_blocks.jsonl", "timeseries.csv")]
    recording = read_recording(*files)
    args = read_engine_args(folder / "meta.json", folder / "config.json")
    o, w, c, r, kv, pair, p = map(to_units, SECONDS[name])
    model = StepModel(o, w, c, r, kv, pair, 1, 1, 1, 1, prompt=p)
    config = config_of(args, replica_of(args), cached=True)
    replayed = replay_recorded(
        replace(config, step_model=model, cold_start_ns=COLD_NS[name]),
        [request.arrival for request in recording.requests],
    )
    judged, run = part_errors(recording.requests[150:], replayed.served[150:]), run_errors(recording, replayed)
    limits = LIMITS[name]
    assert abs(judged.tpot.mean) < limits["tpot"]
    assert abs(judged.ttft.mean) < limits["ttft"]
    for errors in (judged.tpot, judged.ttft):
        assert max(abs(errors.p50), abs(errors.p90), abs(errors.p99)) < limits["quantiles"]
    assert run.running is not None
    assert run.running < 0.03
    assert abs(run.makespan) < limits["makespan"]
