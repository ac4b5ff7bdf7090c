"""Policies: other answers to who pays for a step, beside the bill, so that anyone can see what the rule changes.

Every policy gives each cell an exact weight; `split` turns weights into GPU-nanoseconds. `roofline` is the bill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, lcm
from typing import NamedTuple

from ..errors import InputError
from ..events import Share
from ..roofline.step_model import StepModel
from .apportion import apportion
from .rule import SplitError, cell_weights

Weights = Sequence[int | Fraction]
Policy = Callable[[Sequence[Share], StepModel | None], Weights]

PROMPT_WEIGHT, OUTPUT_WEIGHT = 1, 2
"""What a prompt row and a decode row weigh in `weighted_tokens`."""
GAMES_KEPT = 1 << 16


class PolicyError(InputError):
    """A policy that does not exist."""


def roofline(cells: Sequence[Share], model: StepModel | None) -> Weights:
    """The default share, in 2⁻²⁰ ns: overhead by sequences, linear layers by rows, own attention."""
    return cell_weights(cells, model)


def sequence(cells: Sequence[Share], model: StepModel | None) -> Weights:
    """Every sequence pays the same."""
    return [cell.seqs for cell in cells]


def tokens(cells: Sequence[Share], model: StepModel | None) -> Weights:
    """Every token row pays the same."""
    return [cell.rows for cell in cells]


def weighted_tokens(cells: Sequence[Share], model: StepModel | None) -> Weights:
    """A decode row pays as much as two prompt rows."""
    return [cell.rows * (PROMPT_WEIGHT if cell.phase == "prefill" else OUTPUT_WEIGHT) for cell in cells]


def shapley(cells: Sequence[Share], model: StepModel | None) -> Weights:
    """The Shapley value of the step's time, in 2⁻²⁰ ns: what each cell adds, averaged over all orders of boarding.

    The players are `players_of` the cells, and those of one cell count as equal.
    Raises SplitError without a model, and for a mixture of experts.
    """
    model = shapley_model(model)
    players = players_of(cells)
    everyone = max(sum(players), 1)
    game, sizes = _Game.of(cells, players, model)
    shared = _values(game)
    own = (model.row_comm * cell.rows + cell.attn for cell in cells)
    return [
        count * (Fraction(model.overhead, everyone) + shared[size] / game.scale) + alone
        for count, size, alone in zip(players, sizes, own, strict=True)
    ]


def players_of(cells: Sequence[Share]) -> list[int]:
    """How many may leave each cell one by one: its sequences, or one if it has rows without any."""
    return [max(cell.seqs, min(cell.rows, 1)) for cell in cells]


def shapley_model(model: StepModel | None) -> StepModel:
    """The model, if the Shapley value of its steps can be counted; else raises SplitError."""
    if model is None:
        raise SplitError("the shapley policy needs the step model of the run, and it has none")
    if model.streams:
        raise SplitError(
            "the shapley policy is not for mixtures of experts: what a crowd reads depends on who is in it"
        )
    return model


POLICIES: Mapping[str, Policy] = {
    "roofline": roofline,
    "sequence": sequence,
    "tokens": tokens,
    "weighted_tokens": weighted_tokens,
    "shapley": shapley,
}


def find_policy(name: str) -> Policy:
    """The policy of that name; raises PolicyError when there is none."""
    if name not in POLICIES:
        raise PolicyError(f"no policy {name!r}: choose from {', '.join(POLICIES)}")
    return POLICIES[name]


def split(policy: str, cells: Sequence[Share], model: StepModel | None, duration_ns: int, gpus: int = 1) -> list[int]:
    """GPU-nanoseconds of each cell of one step by a policy of `POLICIES`; they sum to `duration_ns · gpus`.

    Where all weights are zero the split is the bill's own fallback, by rows. Raises PolicyError for an unknown policy.
    """
    weights = find_policy(policy)(cells, model)
    if not any(weights):
        weights = cell_weights(cells, None)
    return [gpus * ns for ns in apportion(duration_ns, weights)]


class _Game(NamedTuple):
    """The game of the shared term L(m(S)) without r, rows scaled to whole numbers: times are `scale` × 2⁻²⁰ ns."""

    players: tuple[tuple[int, int], ...]
    """(scaled rows of one player, how many players have so many), by size."""
    weights: int
    row: int
    ridge: tuple[tuple[int, int], ...]
    """Lines (base, per row) that the term does not fall below."""
    scale: int

    @classmethod
    def of(cls, cells: Sequence[Share], players: Sequence[int], model: StepModel) -> tuple[_Game, list[int]]:
        """The game of a step, and the scaled rows of one player of each cell."""
        per_player = [Fraction(cell.rows, max(count, 1)) for cell, count in zip(cells, players, strict=True)]
        scale = lcm(*(rows.denominator for rows in per_player))
        sizes = [int(rows * scale) for rows in per_player]
        alike: defaultdict[int, int] = defaultdict(int)
        for size, count in zip(sizes, players, strict=True):
            alike[size] += count
        ridge = tuple((base * scale, slope) for base, slope in model.ridge)
        return cls(tuple(sorted(alike.items())), model.weights * scale, model.row, ridge, scale), sizes

    def value(self, size: int, everyone: int) -> Fraction:
        """Shapley value of one player with `size` rows.

        Behind a compute-bound crowd it adds c·size; only smaller crowds need counting, and those are few.
        """
        value = Fraction(self.row * size)
        for (crowd, rows), ways in self.small_crowds(size).items():
            adds = self.time(rows + size) - (self.time(rows) if crowd else 0)
            value += Fraction(ways * (adds - self.row * size), everyone * comb(everyone - 1, crowd))
        return value

    def time(self, rows: int) -> int:
        return max(self.weights, self.row * rows, *(base + slope * rows for base, slope in self.ridge))

    def small_crowds(self, without: int) -> Mapping[tuple[int, int], int]:
        """In how many ways all players but one of size `without` form a crowd of (size, Σ rows), compute-bound ones
        left out.
        """
        ways: Mapping[tuple[int, int], int] = {(0, 0): 1}
        for size, players in self.players:
            others = players - (size == without)
            grown: defaultdict[tuple[int, int], int] = defaultdict(int)
            for (crowd, rows), count in ways.items():
                for joined in range(others + 1):
                    if self.row * (rows + joined * size) == self.time(rows + joined * size) > self.weights:
                        break
                    grown[crowd + joined, rows + joined * size] += count * comb(others, joined)
            ways = grown
        return ways


@lru_cache(maxsize=GAMES_KEPT)
def _values(game: _Game) -> Mapping[int, Fraction]:
    """Shapley value of a player of each size: alike while all rows are memory-bound or all players are equal, else
    counted exactly.

    Steps with the same riders come again and again, whoever they are: their game is solved once.
    """
    everyone = max(sum(count for _, count in game.players), 1)
    whole = game.time(sum(size * count for size, count in game.players))
    if whole == game.weights or len(game.players) == 1:
        return dict.fromkeys((size for size, _ in game.players), Fraction(whole, everyone))
    return {size: game.value(size, everyone) for size, _ in game.players}
