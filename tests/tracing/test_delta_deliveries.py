"""The Delta version of a message, in the shape that the journey uses."""

from pathlib import Path
from typing import Any

import pytest
from tests.tracing.delta_commits import CLUSTER, TOPIC_ID, write_commit

from ottla.tracing.delta_deliveries import DeltaTableError, add_tables, table_document
from ottla.tracing.delta_log import find_delivery, read_commits


def test_the_oldest_commit_of_a_log_is_a_bound(tmp_path: Path) -> None:
    write_commit(tmp_path, 8, 5, 50)
    found = find_delivery(read_commits(tmp_path, "flights", TOPIC_ID, CLUSTER, 0), 3)
    assert found is not None
    document = table_document("/lake/flights", found)
    assert document["when"] == {"since_ms": None, "until_ms": 8_000, "exact": False}
    assert (document["delta"]["version"], document["delta"]["last_version"]) == (None, 8)


def test_a_journey_gets_versions_from_the_tables(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write_commit(one, 1, 0, 10)
    write_commit(two, 1, 0, 3)
    document: dict[str, Any] = {"topic": "flights", "partition": 0, "offset": 7, "delivered": []}
    (missing,) = add_tables(document, [one, two], TOPIC_ID, CLUSTER)
    assert missing.startswith(f"{two}: none of the last")
    (found,) = document["delivered"]
    assert (found["group"], found["delta"]["table"], found["delta"]["version"]) == (
        None,
        str(one),
        1,
    )
    with pytest.raises(DeltaTableError, match="is not a Delta table: no such file"):
        add_tables(document, [tmp_path / "nowhere"], TOPIC_ID, CLUSTER)
