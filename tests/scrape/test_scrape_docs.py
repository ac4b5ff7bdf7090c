"""The guide's table is made from the mapping, and the mapping names what exists."""

import runpy
from pathlib import Path

import pytest

from farebox.collector.scrape.mapping import COUNTERS, FACTS, GAUGES, HISTOGRAMS, engines, parse

ROOT = Path(__file__).parents[2]


def test_the_guide_has_the_table_of_the_mapping():
    made = runpy.run_path(str(ROOT / "docs" / "make_scraping_table.py"))
    assert made["BEGIN"] + made["table"]() + made["END"] in (ROOT / "docs" / "scraping.md").read_text("utf-8")


def test_every_noun_of_the_mapping_is_one():
    for engine in engines().values():
        assert engine.gauges.keys() <= {*GAUGES}
        assert engine.counters.keys() <= {*COUNTERS}
        assert engine.histograms.keys() <= {*HISTOGRAMS}
        assert engine.facts.keys() <= {*FACTS}
        assert engine.absent.keys() <= {*GAUGES, *COUNTERS, *HISTOGRAMS}


def test_expressions():
    sum_of = parse("a{x=1|2,y=3} * 0.5 + b{}label / c")
    assert sum_of.families == ["a", "b", "c"]
    assert sum_of.terms[0].where == {"x": {"1", "2"}, "y": {"3"}}
    assert (sum_of.terms[0].factor, sum_of.terms[1].label) == (0.5, "label")
    with pytest.raises(ValueError, match="is no term"):
        parse("a -")
