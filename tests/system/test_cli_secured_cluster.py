"""The commands that change a cluster, over TLS and SASL, on Apache Kafka itself."""

from __future__ import annotations

import pytest
from tests.system import test_pipeline_on_secured_kafka
from tests.system.test_cli_secured_transactions import typed
from tests.system.test_pipeline_on_secured_kafka import Secured

kafka_jars = test_pipeline_on_secured_kafka.kafka_jars
secured = test_pipeline_on_secured_kafka.secured
pytestmark = [pytest.mark.full, pytest.mark.kafka, pytest.mark.timeout(600)]

RECORDS = 2_000


@pytest.mark.parametrize("listener", ["SCRAM over TLS", "own certificate"])
def test_the_commands(secured: Secured, listener: str) -> None:
    address, settings = secured.sasl, secured.scram()
    if listener == "own certificate":
        address, settings = secured.mutual, secured.certified()
    name = listener.replace(" ", "-")
    typed(address, settings, "topic", "create", name, "--partitions", "2")

    sent = typed(address, settings, "bench", "produce", name, "--records", str(RECORDS))
    read = typed(address, settings, "bench", "consume", name)
    assert (sent["records"], read["records"]) == (RECORDS, RECORDS)

    (folder,) = typed(address, settings, "cluster", "log-dirs", name)
    assert sum(each["size_bytes"] for each in folder["replicas"]) > RECORDS

    assert typed(address, settings, "cluster", "reassign", "--list") == []
    same = typed(address, settings, "cluster", "reassign", name, "--brokers", "1", "--yes")
    assert same == {"requested": False, "done": True, "moved": []}
    wrong = ("cluster", "reassign", name, "--assign", "9,1", "--yes")
    assert "there is no live broker '9'" in typed(address, settings, *wrong, code=1)

    assert typed(address, settings, "cluster", "elect", name) == []

    limited = typed(address, settings, "cluster", "throttle", name, "--rate", "1MiB")
    assert limited["brokers"] == [{"broker": 1, "leader_rate": 1 << 20, "follower_rate": 1 << 20}]
    typed(address, settings, "cluster", "throttle", "--off")
    (left,) = typed(address, settings, "cluster", "throttle")["brokers"]
    assert left == {"broker": 1, "leader_rate": None, "follower_rate": None}
