"""A real vLLM server with the plugin, as a child process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from pathlib import Path

PORT = 8031
START_S = 600.0
_LINE = re.compile(r"^(vllm:\w+?)(?:_total)?\{(.*)\} (\S+)$")


class Server:
    """Runs until the `with` block ends. `log` is what it printed."""

    def __init__(self, folder: Path, model: Path, *options: str, keys: Path | None = None) -> None:
        self.log, self.spool = folder / "server.log", folder / "spool"
        quiet = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        ours = {"FAREBOX_SPOOL": str(self.spool), "FAREBOX_ENGINE": "real"}
        ours |= {"FAREBOX_KEYS": str(keys)} if keys else {"FAREBOX_TRUST_TENANT_HEADER": "X-Tenant-Id"}
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment = inherited | quiet | ours | {"VLLM_CPU_KVCACHE_SPACE": "1"}
        self._command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        self._command += ["--served-model-name", "tiny", "--load-format", "dummy", "--dtype", "bfloat16"]
        self._command += ["--max-model-len", "2048", "--max-num-seqs", "16", "--enforce-eager"]
        self._command += ["--host", "127.0.0.1", "--port", str(PORT), *options]

    def __enter__(self) -> Server:
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"vLLM did not start: see {self.log}")
            time.sleep(1)
        return self

    def __exit__(self, *_: object) -> None:
        """Ask it to end, as an operator does; whatever is left after a minute is killed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def counters(self) -> dict[str, float]:
        """The counters of its page, summed over engines; those by source have it in their name."""
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=30) as page:
            lines = page.read().decode().splitlines()
        found: dict[str, float] = defaultdict(float)
        for name, labels, value in (match.groups() for match in map(_LINE.match, lines) if match):
            source = re.search(r'source="(\w+)"', labels)
            found[f"{name}/{source[1]}" if source else name] += float(value)
        return found

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5) as health:
                return health.status == 200
        except OSError:
            return False
