"""The charts of the HTML report, as SVG and plain boxes that need no script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 1000, 220
LEFT, BOTTOM, TOP = 74, 22, 8
LABELS = 12
"""At most so many days are named."""
Amounts = Mapping[str, int]
"""Account → amount, in the order in which they are stacked."""


def strip(amounts: Amounts, text: Callable[[int], str]) -> str:
    """One bar of the accounts side by side; what is not positive is left out."""
    shown = {name: amount for name, amount in amounts.items() if amount > 0}
    parts = [
        f'<i class="{name}" style="flex:{_part(amount, sum(shown.values()))}"'
        f' title="{safe(f"{name} {text(amount)}")}"></i>'
        for name, amount in shown.items()
    ]
    return f'<div class="strip">{"".join(parts)}</div>'


def bar(name: str, amount: int, most: int) -> str:
    """A bar as long as `amount` is beside `most`."""
    return f'<div class="{name}" style="width:{_part(amount, most)}%"></div>' if amount > 0 and most > 0 else ""


def day_chart(days: Sequence[tuple[str, Amounts]], text: Callable[[int], str], what: str) -> str:
    """Stacked columns, one per day: days are (name, amounts)."""
    highest = max((sum(_positive(amounts)) for _, amounts in days), default=0)
    if not highest:
        return ""
    pitch, scale = (WIDTH - LEFT) / len(days), (HEIGHT - BOTTOM - TOP) / highest
    marks = [_grid(value, scale, text) for value in range(0, highest + 1, round_step(highest))]
    columns = [
        _column(LEFT + number * pitch, pitch, scale, day, amounts, text) for number, (day, amounts) in enumerate(days)
    ]
    every = -(-len(days) // LABELS)
    names = [
        f'<text x="{LEFT + (number + 0.5) * pitch:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{safe(day[5:])}</text>'
        for number, (day, _) in enumerate(days)
        if number % every == 0
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{safe(what)}">'
        f"{''.join(marks)}{''.join(columns)}{''.join(names)}</svg>"
    )


def round_step(highest: int) -> int:
    """A round distance between grid lines (1, 2 or 5 with zeros), so that there are three to eight of them."""
    power = 10 ** max(len(str(highest)) - 2, 0)
    return next((step * power for step in (1, 2, 5, 10, 20) if step * power * 6 >= highest), 20 * power)


def _grid(value: int, scale: float, text: Callable[[int], str]) -> str:
    y = HEIGHT - BOTTOM - value * scale
    return (
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{safe(text(value))}</text>'
    )


def _column(x: float, pitch: float, scale: float, day: str, amounts: Amounts, text: Callable[[int], str]) -> str:
    width, y, boxes = max(pitch * 0.72, 1.0), float(HEIGHT - BOTTOM), list[str]()
    for name, amount in amounts.items():
        if amount <= 0:
            continue
        height = amount * scale
        y -= height
        title = safe(f"{day}: {name} {text(amount)}")
        boxes.append(
            f'<rect class="{name}" x="{x + (pitch - width) / 2:.1f}" y="{y:.2f}" width="{width:.1f}"'
            f' height="{height:.2f}"><title>{title}</title></rect>'
        )
    return "".join(boxes)


def _positive(amounts: Amounts) -> list[int]:
    return [amount for amount in amounts.values() if amount > 0]


def _part(amount: int, whole: int) -> str:
    """A part in percent, for a style."""
    return f"{100 * amount / whole:.3f}"


def safe(text: str) -> str:
    """Text for HTML: escaped, and without characters that hide or steer."""
    return escape("".join(char if char.isprintable() else "�" for char in text))
