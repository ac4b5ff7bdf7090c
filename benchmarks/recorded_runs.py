"""Fits to recorded vLLM runs: python benchmarks/recorded_runs.py FOLDER… (each with requests.jsonl and meta.json).

Prints what `farebox calibrate --requests` finds for each, fitted on the first half; exits 1 when one misses its limits.
Takes a minute or two per run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from farebox.calibration.fit import Fit
from farebox.cli.calibrate_run import RunFiles, fitted, print_fit, subject

ONE_GPU = {"TPOT": 0.02, "TTFT": 0.015, "percentiles": 0.03, "riders": 0.03, "makespan": 0.03}
SEVERAL_GPUS = {"TPOT": 0.03, "TTFT": 0.04, "percentiles": 0.06, "riders": 0.03, "makespan": 0.05}


def misses(found: Fit, limits: dict[str, float]) -> list[str]:
    judged, run = found.judged, found.run
    assert judged.tpot is not None
    errors = (judged.tpot, judged.ttft)
    reached = {
        "TPOT": abs(judged.tpot.mean),
        "TTFT": abs(judged.ttft.mean),
        "percentiles": max(abs(value) for e in errors for value in (e.p50, e.p90, e.p99)),
        "riders": run.running or 0.0,
        "makespan": abs(run.makespan),
    }
    return [f"{name} {100 * reached[name]:.2f} %" for name, limit in limits.items() if reached[name] > limit]


def main() -> None:
    missed = False
    for folder in map(Path, sys.argv[1:]):
        one = subject(RunFiles(folder / "requests.jsonl", None, None, None), None, None, None)
        began = time.process_time()
        found = fitted(one)
        print_fit(one, found)
        beyond = misses(found, ONE_GPU if one.replica.tp == 1 else SEVERAL_GPUS)
        missed |= bool(beyond)
        verdict = f"beyond limits: {', '.join(beyond)}" if beyond else "within limits"
        print(f"{time.process_time() - began:.0f} s of CPU; {verdict}\n")
    sys.exit(missed)


if __name__ == "__main__":
    main()
