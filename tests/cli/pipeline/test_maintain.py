"""`ottla pipeline maintain`, as far as it goes without Spark."""

from pathlib import Path

import pytest

from ottla.cli.app import carry_out

SINKS = [
    'topic = "copies"',
    'target = "./lake/numbers"\nformat = "json"',
    'target = "numbers"\nurl = "jdbc:postgresql://localhost:5432/lake"',
]
FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "numbers"
schema = "n INT"
[sink]
SINK
[delivery]
checkpoint = "./cp/numbers"
"""


@pytest.mark.parametrize("sink", SINKS)
def test_a_file_that_writes_no_table_to_maintain_is_refused(
    tmp_path: Path, sink: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE.replace("SINK", sink))
    assert carry_out(["pipeline", "maintain", str(file)]) == 1
    said = capsys.readouterr().err
    assert said == "ottla pipeline maintain: numbers.toml writes no table that Ottla maintains.\n"
