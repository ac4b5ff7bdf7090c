"""The jump engine's waiting queue."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from .inflow import LANES


class Queue:
    """Numbers of requests that wait, by lane (one per tier), first come first served within one."""

    __slots__ = ("_lanes", "size")

    def __init__(self) -> None:
        self._lanes: tuple[deque[int], ...] = tuple(deque[int]() for _ in LANES)
        self.size = 0

    def put(self, number: int, lane: int) -> None:
        """Queue a newcomer at the end of its lane."""
        self._lanes[lane].append(number)
        self.size += 1

    def put_back(self, number: int, lane: int) -> None:
        """Queue a preempted request at the front of its lane."""
        self._lanes[lane].appendleft(number)
        self.size += 1

    def head(self) -> int:
        """Whose turn is next; somebody must wait."""
        for lane in self._lanes:
            if lane:
                return lane[0]
        raise IndexError("nobody waits")

    def pop(self, lane: int) -> None:
        """Take out the head, which is in `lane`."""
        self._lanes[lane].popleft()
        self.size -= 1

    def numbers(self) -> list[int]:
        """All who wait."""
        return [number for lane in self._lanes for number in lane]

    def renumber(self, less: int) -> None:
        """Requests have smaller numbers by `less` from now on."""
        self._lanes = tuple(deque(number - less for number in lane) for lane in self._lanes)

    def drop(self, number: int, lane: int) -> bool:
        """Take out somebody who hung up; False: it does not wait."""
        with suppress(ValueError):
            self._lanes[lane].remove(number)
            self.size -= 1
            return True
        return False
