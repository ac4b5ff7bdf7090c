"""The file: faults in its own words, and an example that names every key."""

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from farebox.cli.app import app
from farebox.collector.config.alerts import AlertsConfig, RuleConfig
from farebox.collector.config.collecting import CollectConfig
from farebox.collector.config.file import read_config
from farebox.collector.config.retention import RetentionConfig
from farebox.collector.config.sources import DcgmConfig, NvmlConfig, OtlpConfig, ScrapeConfig, SpoolConfig
from farebox.errors import InputError

SECTIONS = (
    CollectConfig,
    ScrapeConfig,
    SpoolConfig,
    NvmlConfig,
    DcgmConfig,
    OtlpConfig,
    AlertsConfig,
    RuleConfig,
    RetentionConfig,
)
SCRAPE = '[[source]]\nkind = "scrape"\nurl = "http://a:1"\n'


def read(tmp_path: Path, text: str) -> CollectConfig:
    path = tmp_path / "farebox.toml"
    path.write_text(text)
    return read_config(path)


def example() -> str:
    done = CliRunner().invoke(app, ["collect", "--example"])
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('stor = "s"', "stor: there is no such key; did you mean store?"),
        ("", "store is missing"),
        ('store = "s"\n[[source]]\nkind = "scrap"', "source 1.kind must be one of scrape, spool, nvml, dcgm, otlp"),
        (
            'store = "s"\n' + SCRAPE + "intervall = 3",
            "source 1 (scrape).intervall: there is no such key; did you mean in",
        ),
        ('store = "s"\n' + SCRAPE + "interval = 0.1", "source 1 (scrape).interval = 0.1: input should be greater"),
        ('store = "s"\n' + SCRAPE + SCRAPE, "two scrape sources are called http://a:1"),
        ('store = "s"\n' + SCRAPE + 'token_env = "A"\ntoken_file = "b"', "not both"),
        ('store = "s"\n[[alerts.rule]]\nkind = "idle"\nabov = 1', "did you mean above?"),
        ('store = "s"\n[retention]\nstep = 3', "retention.step: there is no such key; did you mean steps?"),
        ('store = "s"\n[retention]\nsteps = 0', "retention.steps = 0"),
        ("store = [", "is no TOML"),
    ],
)
def test_faults_are_named_in_the_files_own_words(tmp_path, text, words):
    with pytest.raises(InputError, match=re.escape(words)):
        read(tmp_path, text)


def test_paths_are_meant_from_the_files_folder(tmp_path):
    config = read(tmp_path, 'store = "s"\n[[source]]\nkind = "spool"\npath = "p"\n' + SCRAPE + 'ca = "/etc/ca.pem"\n')
    spool, scrape = config.source
    assert (config.store, spool.path, scrape.ca) == (tmp_path / "s", tmp_path / "p", Path("/etc/ca.pem"))


def test_the_example_is_right_as_it_is_and_with_all_that_is_commented_out(tmp_path):
    assert len(read(tmp_path, example()).source) == 3
    keys = re.sub(r"(?m)^# ?(?=(\[|\w+ = ))", "", example())
    document = tomllib.loads("\n".join(line for line in keys.splitlines() if not line.startswith("# ")))
    for source in document["source"]:
        source.pop("token_file", None)
    config = CollectConfig.model_validate(document)
    assert len(config.source) == 5 and config.alerts and len(config.alerts.rule) == 6


def test_the_example_names_every_key():
    text = example()
    for section in SECTIONS:
        for name in section.model_fields:
            assert re.search(rf"(?m)^#? ?(\[*{name}\b|\[\[\w+\.{name}|{name} =)", text) or f"{name} = " in text, name
            assert section.model_fields[name].description or name == "kind"


def test_check_says_that_a_file_is_right_and_changes_nothing(tmp_path):
    (tmp_path / "f.toml").write_text('store = "s"\n')
    done = CliRunner().invoke(app, ["collect", "-c", str(tmp_path / "f.toml"), "--check"])
    assert done.exit_code == 0 and "is right: 0 sources" in done.stderr and not (tmp_path / "s").exists()
    assert CliRunner().invoke(app, ["collect"]).exit_code == 2
