"""Write the tables of docs/data.md from the records in farebox.events: `python docs/make_data.py`."""

import inspect
from pathlib import Path

from farebox.events import EVENT_TABLES, SETTING_TABLES, Table

PAGE = Path(__file__).with_name("data.md")
MARK = "<!-- made by docs/make_data.py -->"
TYPES = {"int": "int64", "str": "text", "ints": "list of int64", "strs": "list of text"}


def table_text(table: Table) -> str:
    """One table as Markdown: what a row is, its key, its time, and every column."""
    meaning = inspect.cleandoc(table.record.__doc__ or "").split("\n\n")
    lines = [
        f"### {table.name}",
        "",
        "\n\n".join(meaning),
        "",
        f"Key: `{', '.join(table.key)}`. Time: `{table.time}`. Order in a file: `{', '.join(table.sort)}`.",
        "",
        "| column | type | unit | null | meaning |",
        "|---|---|---|---|---|",
    ]
    for c in table.columns:
        doc = c.doc.replace("|", "\\|")
        lines.append(f"| `{c.name}` | {TYPES[c.kind]} | {c.unit} | {'yes' if c.nullable else ''} | {doc} |")
    return "\n".join(lines)


def tables_text() -> str:
    """All tables: events, which are archived, then settings, which stay in the database."""
    parts = ["## Events", *map(table_text, EVENT_TABLES), "## Settings", *map(table_text, SETTING_TABLES)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    head = PAGE.read_text().split(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n\n{tables_text()}")
