"""The mode table of the README: what riding together saves, and what waiting for the batch costs the user.

    python benchmarks/modes.py [TRACE]        (TRACE as for `farebox run`, e.g. azure:AzureLLMInferenceTrace_conv.csv)

Runs the first 2 000 requests at eight times their density through the three modes, on one H100 with Llama-3-8B, and
prints a Markdown table. Virtual time: the figures do not depend on the machine that computes them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

MODES = ("none", "static", "continuous")


def measure(trace: str, mode: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "farebox.cli", "run", "--trace", trace, "--limit", "2000", "--load", "8"]
        options = ["--gpu", "h100", "--model", "llama-3-8b", "--mode", mode, "--store", f"{folder}/store", "--json"]
        done = subprocess.run([*command, *options], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    trace = sys.argv[1] if len(sys.argv) > 1 else "synthetic"
    runs = {mode: measure(trace, mode) for mode in MODES}
    print("| mode | busy GPU-s per 1k output tokens | against continuous | riding | TTFT p50 | TTFT p99 | done after |")
    print("|---|---|---|---|---|---|---|")
    best = runs["continuous"]["gpu_ns_per_1k_output"]
    for mode, run in runs.items():
        cost = run["gpu_ns_per_1k_output"]
        ttft = run["ttft"]
        print(
            f"| `{mode}` | {cost / 1e9:.3f} | {cost / best:.2f} × | {run['mean_running']:.1f} "
            f"| {ttft['p50_ns'] / 1e9:.2f} s | {ttft['p99_ns'] / 1e9:.2f} s | {run['wall_ns'] / 60e9:.1f} min |"
        )


if __name__ == "__main__":
    main()
