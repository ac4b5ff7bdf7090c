"""What can be wrong with a recorded run."""

from pathlib import Path

from ..errors import InputError


class RecordingError(InputError):
    """A recording that cannot be replayed: which file, which line, and why. `line` is None for the whole file."""

    def __init__(self, path: Path, line: int | None, message: str) -> None:
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {message}")
