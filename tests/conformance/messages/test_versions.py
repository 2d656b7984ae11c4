"""Which requests Apache Kafka has, in which versions, and where Ottla has others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from components.apache_kafka import KafkaJars
from conformance.messages.definitions import read
from conformance.messages.versions import differences, rows

from components import fixture

kafka_jars = fixture.kafka_jars
DIFFERENCES = Path(__file__).parents[3] / "docs" / "differences.md"


def test_every_difference_is_explained(kafka_jars: KafkaJars) -> None:
    """In the table of docs/differences.md, and the table has nothing else."""
    section = DIFFERENCES.read_text().partition("## Requests\n")[2].partition("\n## ")[0]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| ")
    ][1:]
    assert [row[:3] for row in table] == [
        [each.name, each.kafka, each.ottla] for each in differences(read(kafka_jars))
    ]
    assert all(len(row) == 4 and row[3] for row in table)


def test_an_unstable_version_is_none_that_a_client_may_use(kafka_jars: KafkaJars) -> None:
    """InitProducerId 6 is of two-phase commit (KIP-939)."""
    versions = {row.name: row.kafka for row in rows(read(kafka_jars))}
    assert versions["InitProducerId"] == "0-5"
    assert "Vote" not in versions  # only controllers answer it
    assert "StopReplica" not in versions  # nobody does any more


def test_the_command_prints_them_side_by_side(kafka_jars: KafkaJars) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conformance.messages"], capture_output=True, text=True, check=True
    )
    assert "TxnOffsetCommit" in done.stdout
    assert "differs" in done.stdout
