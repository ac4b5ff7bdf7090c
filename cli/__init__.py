"""The command line: one file per command, and imports only when a command runs."""

from .app import main

__all__ = ["main"]
