"""A store that is killed, filled and corrupted while the engine records says what the engine said.

`make torture` goes on for longer.
"""

import subprocess
import sys
from pathlib import Path


def test_what_is_tortured_says_what_the_engine_said():
    command = [sys.executable, str(Path(__file__).with_name("torture.py")), "0", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = [line.partition(":")[0] for line in done.stdout.splitlines()[1:]]
    assert kinds == ["killed", "filled", "corrupted", "spooled"]
