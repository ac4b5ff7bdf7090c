"""Writes the table of docs/scraping.md, which says what is read from which engine's page."""

from __future__ import annotations

from pathlib import Path

from farebox.collector.scrape.mapping import Engine, engines

COLUMNS = {
    "running": "riding", "waiting": "waiting", "kv_ratio": "KV", "prompt_tokens": "prompt", "cached_tokens": "cached",
    "output_tokens": "output", "requests": "requests", "preemptions": "preemptions", "ttft": "TTFT", "itl": "per token",
    "queue": "queue", "busy_s": "own clock",
}  # fmt: skip
BEGIN, END = "<!-- table: docs/make_scraping_table.py -->\n", "<!-- end of table -->\n"
PAGE = Path(__file__).with_name("scraping.md")


def table() -> str:
    """What each engine's page has, and why it lacks the rest."""
    shown = [engine for engine in engines().values() if engine.is_engine]
    lines = [f"| engine | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {engine.name} | {' | '.join(_cell(engine, noun) for noun in COLUMNS)} |" for engine in shown]
    lines += ["", "Where a page has nothing, this is why:", ""]
    for engine in shown:
        reasons = dict.fromkeys(why for noun, why in engine.absent.items() if noun in COLUMNS)
        if reasons:
            lines.append(f"- {engine.name}: {'; '.join(reasons)}.")
    lines += ["", "Where the names come from, and when they were checked:", ""]
    lines += [f"- {engine.name}: {engine.source}." for engine in shown]
    return "\n".join(lines) + "\n"


def _cell(engine: Engine, noun: str) -> str:
    return "x" if noun in engine.nouns else "n/a" if noun in engine.absent else "–"


def main() -> None:
    """Put the table where it belongs."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], "utf-8")


if __name__ == "__main__":
    main()
