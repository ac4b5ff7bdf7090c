"""What can be wrong with a workload."""

from pathlib import Path

from ...errors import InputError


class WorkloadError(InputError):
    """A trace that cannot be replayed: which file, which line, and why. `line` is None when the whole file is meant."""

    def __init__(self, path: Path, line: int | None, message: str) -> None:
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {message}")
        self.path = path
        self.line = line
        self.message = message
