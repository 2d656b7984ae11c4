import subprocess
import sys
from pathlib import Path

from conformance import kafka_python


def fake_suite(folder: Path, script: str) -> kafka_python.Suite:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return kafka_python.Suite(folder, python, folder)


def test_a_run_that_leaves_no_report_is_a_failure(tmp_path: Path) -> None:
    suite = fake_suite(tmp_path, "echo collection failed; exit 4")
    outcomes = list(kafka_python.run(suite, ["127.0.0.1:1"], ["test_group_admin"]))
    assert [one.state for one in outcomes] == ["failed"]
    assert "collection failed" in (tmp_path / "B.log").read_text()


def test_the_tests_are_pointed_at_all_brokers(tmp_path: Path) -> None:
    suite = fake_suite(tmp_path, 'echo "$KAFKA_URI $KAFKA_BROKERS $KAFKA_REPLICAS"; exit 4')
    for addresses, said in (
        (["127.0.0.1:1234"], "kafka://127.0.0.1:1234 127.0.0.1:1234 1"),
        (["a:1", "b:2", "c:3"], "kafka://a:1 a:1,b:2,c:3 3"),
    ):
        skipped = {one.name for one in kafka_python.run(suite, addresses, [])}
        assert said in (tmp_path / "B.log").read_text()
        assert ("test_delete_records" in skipped) == (len(addresses) > 1)


FIXTURES = """class KafkaFixture:
    def __init__(self, host, port, replicas=1):
        self.host, self.replicas = host, replicas

    def bootstrap_server(self):
        return self.host
"""


def test_the_plugin_gives_clients_all_brokers_and_topics_all_replicas(tmp_path: Path) -> None:
    module = tmp_path / "test" / "integration" / "fixtures.py"
    module.parent.mkdir(parents=True)
    for package in (module.parent, module.parent.parent):
        (package / "__init__.py").touch()
    module.write_text(FIXTURES)
    (tmp_path / "all_brokers.py").write_text(kafka_python.PLUGIN)
    script = (
        "import all_brokers; from test.integration.fixtures import KafkaFixture;"
        "made = KafkaFixture('a', 1, replicas=1); print(made.replicas, made.bootstrap_server())"
    )
    environment = {"PYTHONPATH": str(tmp_path), "KAFKA_REPLICAS": "3", "KAFKA_BROKERS": "a:1,b:2"}
    said = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert said.stdout == "3 a:1,b:2\n", said.stderr
