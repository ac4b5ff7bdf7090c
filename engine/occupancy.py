"""Occupancy: how full an engine is."""

from typing import NamedTuple


class Occupancy(NamedTuple):
    """Seats and KV blocks in use between two steps."""

    running: int
    waiting: int
    kv_blocks_used: int
    kv_blocks_total: int
