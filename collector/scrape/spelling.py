"""What the settings of a scraped engine are called where they are given, so that advice can be followed."""

from __future__ import annotations

from typing import NamedTuple


class Spelling(NamedTuple):
    """The names of settings that messages advise to set."""

    gpu: str
    gpus: str
    token_env: str
    token_file: str
    ca: str


FLAGS = Spelling("--gpu", "--gpus", "--token-env", "--token-file", "--ca-file")
"""As options of a command."""
KEYS = Spelling("gpu = …", "gpus = …", "token_env = …", "token_file = …", "ca = …")
"""As keys of a source in the collector's file."""
