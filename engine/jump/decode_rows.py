"""Decode rows: what each group of decoders does in each step of a segment, made from its rides alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Rides(NamedTuple):
    """Who decodes from which step to which, int64[rides]; steps count from the segment's first.

    In step t a ride looks at t − `origin` tokens, itself included.
    """

    request: Ints
    group: Ints
    begin: Ints
    origin: Ints
    held: Ints
    """Hashed KV blocks that it holds; they are counted apart."""
    end: Ints
    """The first step that it is not in; the segment's end if it goes on."""
    done: Bools
    """Whether its last token came in the segment."""


class DecodeRows(NamedTuple):
    """A row for each group and each step in which it decodes, by group and step; int64[rows]."""

    group: Ints
    step: Ints
    seqs: Ints
    seen: Ints
    """Tokens that the rows look at, themselves included."""
    blocks: Ints
    """KV blocks held that are not hashed, those of the step included."""


def decode_rows(rides: Rides, group: Ints, steps: int, block_size: int) -> DecodeRows:
    """The rows of a segment of `steps` steps, by `group` (int64[rides]).

    A ride of origin o holds ⌈(t − o)/b⌉ blocks in step t. With o + 1 − b = q·b + r that is ⌊t/b⌋ − q, less 1 while
    t mod b < r: sums of q, and counts by r, are all that has to be kept of a group.
    """
    key = np.concatenate([group * (steps + 1) + rides.begin, group * (steps + 1) + rides.end])
    order = np.argsort(key, kind="stable")
    key = key[order]
    last = np.append(key[1:] != key[:-1], True)[: len(key)]
    sign = np.repeat(np.array([1, -1]), len(group))[order]
    origin = np.tile(rides.origin, 2)[order]
    quotient, remainder = np.divmod(origin + 1 - block_size, block_size)
    quotient += np.tile(rides.held, 2)[order]
    n, origins, quotients = (np.cumsum(column)[last] for column in (sign, sign * origin, sign * quotient))
    late = np.cumsum(sign[:, None] * (remainder[:, None] > np.arange(block_size)), axis=0)[last]
    of_group, begin = np.divmod(key[last], steps + 1)
    length = np.where(n > 0, np.append(begin[1:], 0) - begin, 0)[: len(n)]
    seqs, origins, quotients = (np.repeat(column, length) for column in (n, origins, quotients))
    step = np.arange(len(seqs)) + np.repeat(begin - np.cumsum(length) + length, length)
    cycle = step // block_size
    slot = step - cycle * block_size
    slot += np.repeat(np.arange(len(length)) * block_size, length)
    blocks = seqs * cycle - quotients - late.ravel()[slot]
    return DecodeRows(np.repeat(of_group, length), step, seqs, seqs * step - origins, blocks)
