"""When to try again: sooner at first, later and later while it keeps failing."""

FIRST_NS = 1_000_000_000
LONGEST_NS = 300_000_000_000


class Backoff:
    """Waits 1 s, then twice as long after each failure, up to 5 minutes."""

    def __init__(self) -> None:
        self._wait_ns = FIRST_NS
        self._due_ns: int | None = None

    def is_due(self, at_ns: int) -> bool:
        """Whether it is time for the next try."""
        return self._due_ns is None or at_ns >= self._due_ns

    def failed(self, at_ns: int) -> None:
        """Put the next try off."""
        self._due_ns = at_ns + self._wait_ns
        self._wait_ns = min(2 * self._wait_ns, LONGEST_NS)

    def wait_s(self, at_ns: int) -> float:
        """Seconds until the next try."""
        return 0.0 if self._due_ns is None else max(0, self._due_ns - at_ns) / 1e9

    def worked(self) -> None:
        """Start from the beginning the next time."""
        self._wait_ns = FIRST_NS
        self._due_ns = None
