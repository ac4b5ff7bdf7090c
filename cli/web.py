"""The screens in a browser: textual-serve starts `farebox top` anew for everybody who opens the page."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import FareboxError
from .screens import Shown

HOST = "127.0.0.1"


def web_server(store: Path, shown: Shown, port: int) -> Any:
    """textual-serve's `Server` for a store, on this machine only. Raises FareboxError where the extra is missing."""
    if find_spec("textual_serve") is None:
        raise FareboxError("a browser needs the extra web: pip install 'farebox[web]'")
    command = [sys.executable, "-m", "farebox.cli", "top", str(store.absolute())]
    command += ["--ascii"] if shown.ascii_only else []
    command += ["--page", shown.page] if shown.page else []
    from .web_server import LocalServer

    return LocalServer(shlex.join(command), HOST, port, "Farebox")
