"""Put what the commands say into README.md: every block that begins with `$ farebox …` is what that command prints.

    python examples/fast-mode-bill/figures.py STORE

STORE is the one that month.py made; the README calls it "bill".
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).with_name("README.md")
BLOCK = re.compile(r"```\n\$ (farebox (?:.*\\\n)*.*)\n(?:.*\n)*?```\n")


def printed(command: str, store: Path) -> str:
    """What a command prints when "bill" is this store."""
    arguments = shlex.split(command.replace("\\\n", " "))
    wide = os.environ | {"COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(arguments, cwd=store.parent, env=wide, stdout=subprocess.PIPE, text=True, check=True)
    lines = (line.rstrip() for line in done.stdout.splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def main() -> None:
    """Run the commands of all blocks, in their order, and write the README anew."""
    if len(sys.argv) != 2 or Path(sys.argv[1]).name != "bill":
        sys.exit("usage: figures.py STORE, a store that is called bill")
    store = Path(sys.argv[1]).resolve()
    text = BLOCK.sub(lambda block: f"```\n$ {block[1]}\n{printed(block[1], store)}```\n", README.read_text("utf-8"))
    README.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
