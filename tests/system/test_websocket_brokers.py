"""Pages and several brokers: a page has the partitions that its broker leads, and is told where the
others are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.test_websocket_json import Page
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

WAIT_S = 30


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, int]]:
    """Ports for pages, by broker: each of two leads one partition of the topic `t`."""
    folder = tmp_path_factory.mktemp("brokers")
    with ExitStack() as ending:
        ensemble = ZooKeeperEnsemble(folder, 1, 0)
        ending.callback(ensemble.stop)
        ensemble.start()
        ports: dict[int, int] = {}
        for number in (1, 2):
            plain, ports[number] = free_ports(2)
            broker = started(folder / str(number), number, ensemble.connect, plain, ports[number])
            ending.enter_context(broker)
        admin = AdminClient({"bootstrap.servers": f"{HOST}:{plain}"})
        topic = NewTopic("t", 2, replica_assignment=[[1], [2]])
        admin.create_topics([topic])["t"].result(WAIT_S)
        yield ports


def started(folder: Path, number: int, zookeeper: str, plain: int, port: int) -> BrokerProcess:
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:{plain},WS://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,WS:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ottla.websocket.listeners": "WS",
    }
    words = [word for pair in settings.items() for word in ("-c", "=".join(pair))]
    return BrokerProcess(folder, ["--id", str(number), "--zookeeper", zookeeper, *words])


@contextmanager
def page_at(port: int) -> Iterator[Page]:
    url, subprotocol = f"ws://{HOST}:{port}/", Subprotocol("ottla.json")
    with connect(url, subprotocols=[subprotocol], compression=None) as websocket:
        yield Page(websocket)


def subscribed(page: Page) -> dict[str, Any]:
    return page.ask(type="subscribe", id="s", topic="t", **{"from": "earliest"}, permits=100)


def test_a_page_is_told_where_the_other_partitions_are(pages: dict[int, int]) -> None:
    with page_at(pages[1]) as page:
        opened = subscribed(page)
        assert [each["partition"] for each in opened["partitions"]] == [0]
        assert opened["elsewhere"] == [{"partition": 1, "host": HOST, "port": pages[2]}]
        refused = page.ask(type="produce", id=1, topic="t", partition=1, value="there")
        assert (refused["type"], refused["error"]) == ("error", "NOT_LEADER_OR_FOLLOWER")
        assert (refused["host"], refused["port"]) == (HOST, pages[2])
        with page_at(refused["port"]) as there:
            assert subscribed(there)["elsewhere"] == [
                {"partition": 0, "host": HOST, "port": pages[1]}
            ]
            written = there.ask(type="produce", id=1, topic="t", partition=1, value="there")
            assert (written["partition"], written["offset"]) == (1, 0)
            assert there.values(1) == ["there"]
        # Without a partition and a key a record goes to one that is here.
        written = page.ask(type="produce", id=2, topic="t", value="here")
        assert (written["partition"], written["offset"]) == (0, 0)
        assert page.values(1) == ["here"]


def test_a_key_has_the_same_partition_on_every_broker(pages: dict[int, int]) -> None:
    """Written where its leader is, refused elsewhere: never into another partition."""
    for number in range(8):
        answers = []
        for port in pages.values():
            with page_at(port) as page:
                answers.append(
                    page.ask(type="produce", id=1, topic="t", key=f"k{number}", value="v")
                )
        kinds = [each["type"] for each in answers]
        assert sorted(kinds) == ["error", "produced"]
        (written,) = (each for each in answers if each["type"] == "produced")
        (refused,) = (each for each in answers if each["type"] == "error")
        assert refused["error"] == "NOT_LEADER_OR_FOLLOWER"
        assert refused["port"] == pages[written["partition"] + 1]
