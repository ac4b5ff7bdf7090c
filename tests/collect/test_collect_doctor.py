"""What the doctor says of sources and spools."""

import json
import os

from click.testing import CliRunner
from spooled_telling import Teller, spool

from farebox.cli.app import app
from farebox.storage.store import create_store


def test_sources_and_spools(tmp_path):
    create_store(tmp_path / "s").close()
    spool(tmp_path / "s" / "spool" / "late", Teller().life(3))
    spool(tmp_path / "more" / "lossy", [{"dropped": 9}])
    os.utime(tmp_path / "s" / "spool" / "late" / "00000000.spool", (1, 1))
    (tmp_path / "s" / "aside").mkdir()
    (tmp_path / "s" / "aside" / "w.jsonl").write_text("{}\n")
    config = tmp_path / "farebox.toml"
    config.write_text(
        'store = "s"\n[[source]]\nkind = "scrape"\nurl = "http://127.0.0.1:9"\nengine = "gone"\n'
        '[[source]]\nkind = "spool"\npath = "more"\n[[source]]\nkind = "spool"\npath = "none"\n'
    )
    done = CliRunner().invoke(app, ["doctor", "-c", str(config), "--json"])
    assert done.exit_code == 1
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["source gone"]["level"] == "bad" and "127.0.0.1:9" in found["source gone"]["says"]
    assert found["spool late"]["level"] == "bad" and "farebox collect" in found["spool late"]["advice"]
    assert found["spool lossy"]["level"] == "note" and "9 events lost" in found["spool lossy"]["says"]
    assert found["aside w"]["level"] == "bad" and found[f"spools {tmp_path / 'none'}"]["level"] == "note"
