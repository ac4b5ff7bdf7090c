"""Whether somebody watches."""

import sys


def is_interactive() -> bool:
    """True when a screen can be shown; all three streams count, because Textual draws on standard error."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
