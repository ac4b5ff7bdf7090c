"""Advice as one HTML file that opens offline, in the look of the bills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..costing.html_charts import bar, safe
from ..costing.html_page import html_page
from .advice_text import NOTHING, saved_text
from .advise import Advised

if TYPE_CHECKING:
    from ..events import Advice

_EXTRA = """
.advice { margin: 1.6rem 0; padding: 1rem 1.2rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: .5rem; }
.advice h2 { margin: 0; } .advice .bar { width: 100%; margin: .6rem 0; }
dl { display: grid; grid-template-columns: 7rem 1fr; gap: .25rem 1rem; margin: .6rem 0 0; } dt { color: var(--soft); }
dd { margin: 0; } code { font-size: .9em; overflow-wrap: anywhere; }
"""


def advice_html(advised: Advised) -> str:
    """A card per piece of advice, the best first, with a bar as long as what it saves beside the best; what was not
    proposed last.
    """
    title = "What to change"
    most = max((_worth(row, advised) for row in advised.advice), default=0)
    sections = [
        f'<header><div><h1>{title}</h1><p class="period">{safe(advised.baseline.text())}</p></div></header>',
        *(_card(row, advised, most) for row in advised.advice),
        "" if advised.advice else f"<h2>{safe(NOTHING)}</h2>",
        _refused(advised),
        f"<footer><p>{advised.tried:,} changes were tried{_missing(advised)}.</p></footer>",
    ]
    return html_page(title, sections, _EXTRA)


def _worth(row: Advice, advised: Advised) -> int:
    """What bars show: money, or GPU time where nothing has a rate."""
    return row.freed_gpu_ns if advised.before.total_micro is None else row.saved_micro or 0


def _card(row: Advice, advised: Advised, most: int) -> str:
    told = "".join(
        f"<dt>{name}</dt><dd>{'<br>'.join(map(safe, text.split('; ')))}</dd>"
        for name, text in (("why", row.evidence), ("latency", row.effect), ("confidence", row.confidence))
    )
    return (
        f'<section class="advice"><h2>{row.rank}. {safe(row.title)}</h2><p class="period">{safe(saved_text(row))}</p>'
        f'<div class="bar">{bar("tenant", _worth(row, advised), most)}</div>'
        f"<dl>{told}<dt>try</dt><dd><code>{safe(row.command)}</code></dd></dl></section>"
    )


def _refused(advised: Advised) -> str:
    if not advised.refused:
        return ""
    rows = "".join(f"<li>{safe(f'{each.candidate.title}: {each.why}')}</li>" for each in advised.refused)
    return f"<h2>Not proposed, although they would save</h2><ul>{rows}</ul>"


def _missing(advised: Advised) -> str:
    return f"; {advised.missing:,} were not, because somebody interrupted" if advised.missing else ""
