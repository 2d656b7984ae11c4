"""The plugin's fixtures in the test run of another project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

THEIR_TESTS = """
import sys
import pytest

seen = []

def test_nothing_is_imported_before_a_fixture_is_used():
    assert "ottla.testing.plugin" in sys.modules
    assert not [name for name in sys.modules if name.startswith("ottla.protocol")]
    assert "confluent_kafka" not in sys.modules

def test_first(ottla_broker, ottla_topic):
    seen.append((ottla_broker.bootstrap, ottla_topic.name))
    ottla_broker.disconnect("Produce")
    ottla_topic.produce("one")

def test_second(ottla_broker, ottla_topic):
    (bootstrap, name), = seen
    assert ottla_broker.bootstrap == bootstrap
    assert ottla_topic.name != name
    ottla_topic.assert_records([])
    assert ottla_broker.topic(name).consume(1)[0].text == "one"

@pytest.mark.ottla(config={"num.partitions": 3})
def test_own(ottla_broker):
    assert ottla_broker.bootstrap != seen[0][0]
    open("pid", "w").write(str(ottla_broker.process.process.pid))
    ottla_broker.topic("orders").produce("one", partition=2)

@pytest.mark.ottla(broker=3)
def test_misspelt(ottla_broker):
    pass

@pytest.mark.ottla(brokers=3)
def test_wrong_fixture(ottla_broker):
    pass

def test_failing(ottla_topic):
    ottla_topic.produce("found")
    ottla_topic.assert_records(["wanted"])
"""

TESTS_OF_WORKERS = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_shared(ottla_broker, ottla_topic, number):
    ottla_topic.produce(str(number))
    ottla_topic.assert_records([str(number)])
    with open("brokers", "a") as file:
        file.write(ottla_broker.bootstrap + "\\n")
"""


def run(folder: Path, tests: str, *options: str) -> str:
    (folder / "test_theirs.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", *options, "test_theirs.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_fixtures(tmp_path: Path) -> None:
    output = run(tmp_path, THEIR_TESTS)
    assert "1 failed, 4 passed, 2 errors" in output, output
    assert "- missing      'wanted'" in output
    # The failure is shown at the test's line, without the source of the kit.
    assert "test_theirs.py:" in output
    assert not re.findall(r"ottla/testing/(?!plugin)\w+\.py:\d+", output), output
    assert "@pytest.mark.ottla does not take broker; it takes config, brokers, shared" in output
    assert "use the fixture ottla_brokers" in output
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


@pytest.mark.full
@pytest.mark.parametrize(("share", "brokers"), [("true", 1), ("false", 2)])
def test_workers_share_a_broker_or_have_their_own(tmp_path: Path, share: str, brokers: int) -> None:
    output = run(tmp_path, TESTS_OF_WORKERS, "-n2", "-o", f"ottla_share_broker={share}")
    assert "4 passed" in output, output
    assert len(set((tmp_path / "brokers").read_text().split())) == brokers
