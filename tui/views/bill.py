"""The view of the Bill page: one period's bill as lines of text, under a method that a key changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from ..line import Line, Role
from .booked import booked

if TYPE_CHECKING:
    from pathlib import Path

    from ...costing.books import Books
    from ...costing.line import By
    from ...costing.periods import Period
    from ...costing.rating import IdlePolicy
    from ...costing.report import Report
    from ...storage.store import Store
    from ..desk import Desk

Grain = Literal["all", "month", "day"]
GRAINS: tuple[Grain, ...] = get_args(Grain)
GROUPS: tuple[tuple[By, ...], ...] = (
    *(("tenant",), ("team",), ("tenant", "tier"), ("model",), ("engine",), ("gpu_type",), ("tenant", "day"), ("day",)),
)
IDLES: tuple[IdlePolicy, ...] = ("separate", "weighted", "even", "reservation")
POLICIES = ("roofline", "sequence", "tokens", "weighted_tokens", "shapley")
FORMS = (".csv", ".json", ".html", ".parquet")


class Choice(NamedTuple):
    """Which bill is wanted; `back` counts periods before the newest one."""

    grain: Grain = "all"
    back: int = 0
    by: tuple[By, ...] = ("tenant",)
    idle: IdlePolicy = "separate"
    policy: str = "roofline"


@dataclass(frozen=True, slots=True)
class BillView:
    """A bill as it is printed, and the explanation of what changed, where that was asked for."""

    choice: Choice
    lines: tuple[Line, ...]
    total: str
    problems: tuple[str, ...]
    periods: int
    """How many periods of this grain there are."""
    report: Report


@dataclass
class Clerk:
    """Makes bills, in a worker: keeps the books of the policy and period that were asked for last."""

    desk: Desk
    _books: dict[tuple[str, Period | None], Books] = field(default_factory=dict)

    def bill(self, choice: Choice, width: int) -> BillView:
        """The bill of a choice, in `width` columns. Raises FareboxError where there is none."""
        from ...costing.figures import Figures
        from ...costing.report import build_report
        from ...costing.table import page

        with self.desk.open() as store:
            periods = periods_of(store, choice.grain)
            period = _pick(periods, choice)
            books = self._kept(store, choice.policy, period)
        report = build_report(books, period, choice.by, choice.idle, None, None, choice.policy)
        figures = Figures.of(report)
        value = report.total.amount_micro if report.is_priced else report.total.gpu_ns
        total = "no rate" if value is None else f"{figures.text(value)} {figures.unit}"
        lines = tuple(_line(text.plain) for text in page(report, width))
        return BillView(choice, lines, total, report.check(), max(1, len(periods)), report)

    def explain(self, choice: Choice, width: int) -> tuple[Line, ...]:
        """Why the chosen period's bill differs from that of the period before."""
        from rich.console import Console

        from ...costing.explain import explain, render
        from ...errors import InputError

        with self.desk.open() as store:
            periods = periods_of(store, choice.grain)
            if len(periods) < choice.back + 2:
                raise InputError(
                    f"there is no {choice.grain} before this one in the store: choose days or months with d"
                )
            after, before = periods[-1 - choice.back], periods[-2 - choice.back]
            books = self.desk.books(store, before, after, policy=choice.policy)
        found = explain(books, before, after, "tenant", choice.idle, None, None, choice.policy)
        console = Console(file=StringIO(), width=width, color_system=None)
        with console.capture() as capture:
            render(found, console)
        return tuple(_line(text) for text in capture.get().splitlines())

    def forget(self) -> None:
        """Read the store anew next time."""
        self._books.clear()

    def _kept(self, store: Store, policy: str, period: Period | None) -> Books:
        key = (policy, period)
        if key not in self._books:
            periods = [] if period is None else [period]
            self._books = {key: self.desk.books(store, *periods, policy=policy)}
        return self._books[key]


def write_bill(report: Report, path: Path) -> None:
    """Write a bill as a new file, in the format that its name ends with.

    Raises InputError for another ending, or a file that is there already.
    """
    from ...costing import formats, html
    from ...errors import InputError

    if path.suffix not in FORMS:
        raise InputError(f"{path.name}: end the name with {', '.join(FORMS)}")
    if path.suffix == ".parquet":
        content = formats.to_parquet(report)
    else:
        texts = {".csv": formats.to_csv, ".json": formats.to_json, ".html": html.to_html}
        content = texts[path.suffix](report).encode()
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise InputError(f"{path} is there already: choose another name") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def periods_of(store: Store, grain: Grain) -> list[Period]:
    """The UTC months or days from the first to the newest minute of the ledger; none for all time."""
    from ...costing.periods import Period

    first_ns, end_ns = booked(store)
    if grain == "all":
        return []
    days = Period.between(first_ns, end_ns).days()
    names = dict.fromkeys(day.name[: 7 if grain == "month" else 10] for day in days)
    return [Period.parse(name) for name in names]


def _pick(periods: Sequence[Period], choice: Choice) -> Period | None:
    return periods[-1 - min(choice.back, len(periods) - 1)] if periods else None


def _line(text: str) -> Line:
    role: Role = ""
    first = text.split(" ", 1)[0]
    if first in ("idle", "unobserved"):
        role = "warn"
    elif first == "total":
        role = "money"
    elif text.startswith("Does not add up"):
        role = "bad"
    return [(text.rstrip(), role)]
