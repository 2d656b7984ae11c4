"""`ottla pipeline maintain`, as far as it goes without Spark."""

from pathlib import Path

import pytest

from ottla.cli.failures import Failed
from ottla.cli.pipeline.maintain import maintain_file
from ottla.pipelines.file.read import read_file

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
def test_a_file_that_writes_no_table_to_maintain_is_refused(tmp_path: Path, sink: str) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE.replace("SINK", sink))
    with pytest.raises(Failed) as caught:
        maintain_file(read_file(file, {}), None, dry_run=False, as_json=False)
    assert caught.value.message == "numbers.toml writes no table that Ottla maintains."
