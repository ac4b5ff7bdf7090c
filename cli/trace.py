"""`--trace`: which recorded or made-up traffic to run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..engine.arrival import Arrival

KINDS = ("azure", "mooncake", "synthetic")
_NEXT = re.compile(rf",(?=(?:{'|'.join(KINDS)})(?::|,|$))")


@dataclass(frozen=True)
class Trace:
    """One source of arrivals: its kind, and its file (with the tenant's name, if given) or its seed."""

    kind: str
    path: Path | None = None
    tenant: str = ""
    seed: int = 0

    @property
    def has_prefix_ids(self) -> bool:
        """Whether its requests say which prompts begin alike."""
        return self.kind == "mooncake"

    def identity(self) -> str:
        """What makes two traces the same input: the content of the file, not its place; or the seed."""
        from hashlib import sha256

        if self.path is None:
            return f"{self.kind}:{self.seed}"
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        return f"{self.kind}:{self.tenant}:{sha256(content).hexdigest()}"

    def arrivals(self, start_ns: int) -> Iterator[Arrival]:
        """The arrivals in time order; relative stamps count from `start_ns` (UTC). The whole file is checked first."""
        from ..engine.workloads import azure, mooncake, synthetic

        if self.path is None:
            return synthetic.generate(self.seed, start_ns)
        if self.kind == "azure":
            return azure.read(self.path, self.tenant)
        return mooncake.read(self.path, self.tenant, start_ns)


def parse_traces(text: str) -> list[Trace]:
    """Read `azure:PATH[,azure:NAME=PATH…] | mooncake:PATH | synthetic[:SEED]`; `InputError` says what is wrong."""
    return [_parse(part) for part in _NEXT.split(text)]


def _parse(part: str) -> Trace:
    from ..engine.workloads.tenant import tenant_of

    kind, _, rest = part.partition(":")
    if kind not in KINDS:
        raise InputError(f"--trace {part!r}: no such kind of trace; use azure:PATH, mooncake:PATH or synthetic[:SEED]")
    if kind == "synthetic":
        if rest and not rest.isdecimal():
            raise InputError(f"--trace {part!r}: the seed must be a whole number")
        return Trace(kind, seed=int(rest or 0))
    name, separator, path = rest.partition("=")
    if not separator or "/" in name:
        name, path = "", rest
    if not path:
        raise InputError(f"--trace {part!r}: no file named; write {kind}:PATH")
    if Path(path).is_dir():
        raise InputError(f"--trace: {path} is a folder; name a file")
    if not Path(path).is_file():
        hint = f'; for a file called "{rest}" write {kind}:NAME={rest}' if separator and Path(rest).is_file() else ""
        raise InputError(f"--trace: {path}: no such file{hint}")
    tenant = name or tenant_of(path)
    if not tenant.isprintable():
        raise InputError(
            f"--trace: {tenant!r} is no name for a tenant: it must be printable text; write {kind}:NAME={path}"
        )
    return Trace(kind, Path(path), tenant)
