"""The examples are what they say: metrics that exist, files that can be read, commands that are there."""

import configparser
import json
import re
from pathlib import Path

import pytest

from farebox.cli.app import app
from farebox.collector.config.file import read_config
from farebox.collector.exporter.page import COUNTERS, GAUGES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_every_expression_of_the_board_names_metrics_and_labels_that_are_exported():
    labels = {f"{name}_total": names for name, (_, names) in COUNTERS.items()}
    labels |= {name: names for name, (_, names) in GAUGES.items()}
    board = json.loads((EXAMPLES / "grafana" / "farebox.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = [re.findall(r"farebox_\w+", expression) for expression in expressions]
    assert all(used) and {name for names in used for name in names} == set(labels)
    for expression, names in zip(expressions, used, strict=True):
        known = {label for name in names for label in labels[name]}
        grouped = re.findall(r"(?:by|on) \(([^)]*)\)", expression)
        assert {word.strip() for inner in grouped for word in inner.split(",")} <= known, expression
        for name, selector in re.findall(r"(farebox_\w+)\{([^}]*)\}", expression):
            assert set(re.findall(r"(\w+)(?:=~|!=|=)\"", selector)) <= set(labels[name]), expression


def test_the_example_file_is_what_the_command_prints():
    assert (EXAMPLES / "farebox.toml").read_text() == (EXAMPLES.parent / "cli" / "example_collect.toml").read_text()
    assert read_config(EXAMPLES / "farebox.toml").source


def test_the_unit_is_hardened_and_runs_a_command_that_exists():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(EXAMPLES / "systemd" / "farebox-collect.service")
    service = unit["Service"]
    assert service["Type"] == "notify" and service["StateDirectory"] == "farebox" and service["WatchdogSec"]
    assert service["ProtectSystem"] == "strict" and service["NoNewPrivileges"] == "yes"
    assert "HUP" in service["ExecReload"]
    _, command, *options = service["ExecStart"].split()
    known = [name for param in app.commands[command].params for name in param.opts]
    assert command == "collect" and set(options[::2]) <= set(known)


def test_the_container_and_the_pod_run_the_collector():
    container = (EXAMPLES / "container" / "Containerfile").read_text()
    assert '"collect", "-c"' in container and "USER 10001" in container and "[serve]" in container
    yaml = pytest.importorskip("yaml")
    documents = list(yaml.safe_load_all((EXAMPLES / "kubernetes" / "vllm-with-farebox.yaml").read_text()))
    assert [document["kind"] for document in documents] == ["ConfigMap", "PersistentVolumeClaim", "Deployment"]


def test_the_pods_file_is_right(tmp_path):
    text = (EXAMPLES / "kubernetes" / "vllm-with-farebox.yaml").read_text()
    inner = text.split("farebox.toml: |\n")[1].split("\n---")[0]
    (tmp_path / "farebox.toml").write_text("\n".join(line[4:] for line in inner.splitlines()))
    config = read_config(tmp_path / "farebox.toml")
    assert [source.kind for source in config.source] == ["spool", "scrape"]
    for name in ("FAREBOX_SPOOL", "FAREBOX_ENGINE", "mountPath: /spool"):
        assert name in text
