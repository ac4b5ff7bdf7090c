"""Real collectors in processes of their own, and spools to feed them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def until(found, timeout_s=120.0):
    """What `found` answers once it is something."""
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)
    return answer


class Process:
    """A running `farebox collect`; what it says so far."""

    def __init__(self, folder: Path, text: str, **environment: str):
        self.folder = folder
        self.config = folder / "farebox.toml"
        self.config.write_text(text)
        self.log = folder / "log"
        command = [sys.executable, "-m", "farebox.cli", "collect", "-c", str(self.config)]
        with self.log.open("w") as log:
            self.child = subprocess.Popen(command, stderr=log, env=os.environ | environment)

    def said(self) -> str:
        return self.log.read_text()

    def says(self, words: str) -> str:
        return until(lambda: self.said() if words in self.said() else None)

    def end(self, signum=signal.SIGTERM) -> int:
        self.child.send_signal(signum)
        return self.child.wait(60)
