"""Pages that read and write topics with JSON over WebSocket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.issuer import Issuer, serving
from tests.system.test_websocket import started
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from ottla.network.authentication import MIN_REAUTHENTICATION_MS
from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30


class Page:
    """Does what a page does."""

    def __init__(self, websocket: ClientConnection) -> None:
        self.websocket = websocket
        self.records: list[dict[str, Any]] = []

    def send(self, **message: Any) -> None:
        self.websocket.send(json.dumps(message))

    def receive(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.websocket.recv(WAIT_S))
        return found

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer; records that come before it are kept."""
        self.send(**message)
        while True:
            found = self.receive()
            if found["type"] != "record":
                return found
            self.records.append(found)

    def read(self, count: int) -> list[dict[str, Any]]:
        while len(self.records) < count:
            found = self.receive()
            assert found["type"] == "record", found
            self.records.append(found)
        taken, self.records = self.records[:count], self.records[count:]
        return taken

    def values(self, count: int) -> list[Any]:
        return [each["value"] for each in self.read(count)]


class Site:
    """A broker for pages, with a second listener for other clients."""

    def __init__(self, new_broker: Callable[..., BrokerProcess], **more: str) -> None:
        self.plain_port, self.port = free_ports(2)
        protocol = more.pop("protocol", "PLAINTEXT")
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self.plain_port},WS://{HOST}:{self.port}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,WS:{protocol}",
            "ottla.websocket.listeners": "WS",
        }
        self.broker = started(new_broker, **settings | more)
        self.settings = {"bootstrap.servers": f"{HOST}:{self.plain_port}"}

    @contextmanager
    def page(self) -> Iterator[Page]:
        url, subprotocol = f"ws://{HOST}:{self.port}/", Subprotocol("ottla.json")
        with connect(url, subprotocols=[subprotocol], compression=None) as websocket:
            yield Page(websocket)

    def create(self, topic: str, partitions: int = 1) -> None:
        admin = AdminClient(self.settings)
        (done,) = admin.create_topics([NewTopic(topic, partitions)]).values()
        done.result(WAIT_S)

    def produce(self, *values: bytes, key: bytes | None = None, compression: str = "none") -> None:
        producer = Producer(self.settings | {"compression.type": compression})
        for value in values:
            producer.produce("t", value, key)
        assert producer.flush(WAIT_S) == 0


@pytest.fixture
def site(new_broker: Callable[..., BrokerProcess]) -> Site:
    return Site(new_broker)


def test_a_page_writes_and_reads(site: Site) -> None:
    with site.page() as page:
        written = page.ask(
            type="produce", id=1, topic="t", key="k", value="Grüße", headers={"a": "b", "c": None}
        )
        assert written == {"type": "produced", "id": 1, "topic": "t", "partition": 0, "offset": 0}
        raw = {"base64": "/wA="}
        assert page.ask(type="produce", id=2, topic="t", value=raw)["offset"] == 1
        assert page.ask(type="produce", id=3, topic="t", key="k", value=None)["offset"] == 2
        opened = page.ask(type="subscribe", id=4, topic="t", **{"from": "earliest"}, permits=10)
        assert opened == {
            "type": "subscribed",
            "id": 4,
            "topic": "t",
            "partitions": [{"partition": 0, "offset": 0}],
        }
        first, second, third = page.read(3)
        assert first.pop("timestamp") > 1_700_000_000_000
        assert first == {
            "type": "record", "id": 4, "topic": "t", "partition": 0, "offset": 0,
            "key": "k", "value": "Grüße", "headers": {"a": "b", "c": None},
        }  # fmt: skip
        assert (second["key"], second["value"]) == (None, raw)
        assert (third["key"], third["value"]) == ("k", None)
    consumer = Consumer(site.settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    message = consumer.poll(WAIT_S)
    assert message is not None
    assert (message.key(), message.value()) == (b"k", "Grüße".encode())
    consumer.close()


def test_where_a_page_begins(site: Site) -> None:
    site.create("t")
    site.produce(b"0", b"1", b"2")
    with site.page() as page:
        last = page.ask(type="subscribe", id="latest", topic="t", permits=9)
        assert last["partitions"] == [{"partition": 0, "offset": 3}]
        page.ask(type="subscribe", id="at", topic="t", **{"from": {"offset": 1}}, permits=9)
        assert page.values(2) == ["1", "2"]
        page.ask(type="subscribe", id="time", topic="t", **{"from": {"time": 0}}, permits=9)
        assert page.values(3) == ["0", "1", "2"]
        later = {"time": 9_000_000_000_000}
        found = page.ask(type="subscribe", id="later", topic="t", **{"from": later})
        assert found["partitions"] == [{"partition": 0, "offset": 3}]
        site.produce(b"3")
        assert {(each["id"], each["value"]) for each in page.read(3)} == {
            ("latest", "3"), ("at", "3"), ("time", "3"),
        }  # fmt: skip
        beyond = page.ask(type="subscribe", id="x", topic="t", **{"from": {"offset": 9}}, permits=1)
        assert beyond["type"] == "subscribed"
        error = page.receive()
        assert (error["id"], error["error"]) == ("x", "OFFSET_OUT_OF_RANGE")


def test_a_filter_on_the_key_over_partitions(site: Site) -> None:
    site.create("t", 4)
    for number in range(20):
        site.produce(str(number).encode(), key=str(number % 5).encode())
    with site.page() as page:
        page.ask(type="subscribe", id=1, topic="t", key="3", **{"from": "earliest"}, permits=99)
        assert page.values(4) == ["3", "8", "13", "18"]
        # Where Java's producer would write it, too.
        assert (
            page.ask(type="produce", id=2, topic="t", key="3", value="last")["type"] == "produced"
        )
        assert page.values(1) == ["last"]


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd", "lz4", "snappy"])
def test_permits(site: Site, compression: str) -> None:
    """No record comes without one, and none is left out."""
    values = [str(number) for number in range(1_000)]
    site.create("t")
    site.produce(*(value.encode() for value in values), compression=compression)
    with site.page() as page:
        page.ask(type="subscribe", id=1, topic="t", **{"from": "earliest"})
        got: list[str] = []
        for count in (1, 2, 300, 5, 692):
            page.send(type="permit", id=1, count=count)
            got += page.values(count)
            # The next message is the answer, and no record.
            assert page.ask(type="unsubscribe", id="none")["type"] == "error"
            assert not page.records
        assert got == values
        assert page.ask(type="unsubscribe", id=1) == {"type": "unsubscribed", "id": 1}


def test_committed_records_only(site: Site) -> None:
    site.create("t")
    producer = Producer(site.settings | {"transactional.id": "x"})
    producer.init_transactions(WAIT_S)
    for value, commits in ((b"a", True), (b"never", False), (b"b", True)):
        producer.begin_transaction()
        producer.produce("t", value)
        assert producer.flush(WAIT_S) == 0
        if commits:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
    site.produce(b"c")
    with site.page() as page:
        page.ask(type="subscribe", id=1, topic="t", **{"from": "earliest"}, permits=9)
        assert page.values(3) == ["a", "b", "c"]


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "nonsense"}, "INVALID_REQUEST", "type must be one of"),
    ({}, "INVALID_REQUEST", "type must be one of"),
    ({"type": ["produce"]}, "INVALID_REQUEST", "type must be one of"),
    ({"type": "subscribe"}, "INVALID_REQUEST", "topic must be a text"),
    ({"type": "subscribe", "topic": "none"}, "UNKNOWN_TOPIC_OR_PARTITION", ""),
    ({"type": "subscribe", "topic": "t", "from": "now"}, "INVALID_REQUEST", "from must be"),
    ({"type": "subscribe", "topic": "t", "from": {"offset": -1}}, "INVALID_REQUEST", "from"),
    ({"type": "subscribe", "topic": "t", "permits": -1}, "INVALID_REQUEST", "permits must"),
    ({"type": "subscribe", "topic": "t", "permits": 1e3}, "INVALID_REQUEST", "permits must"),
    ({"type": "permit", "count": 1}, "INVALID_REQUEST", "no such subscription"),
    ({"type": "produce", "topic": "t", "value": 7}, "INVALID_REQUEST", "value must be a text"),
    ({"type": "produce", "topic": "t", "value": {"base64": "!"}}, "INVALID_REQUEST", "value"),
    ({"type": "produce", "topic": "t", "headers": []}, "INVALID_REQUEST", "headers must be"),
    ({"type": "produce", "topic": "a b"}, "INVALID_TOPIC_EXCEPTION", ""),
    ({"type": "produce", "topic": "t", "partition": 7}, "NOT_LEADER_OR_FOLLOWER", ""),
    ({"type": "produce", "topic": "\ud800"}, "INVALID_REQUEST", "a text of Unicode"),
    ({"type": "login", "mechanism": "GSSAPI"}, "INVALID_REQUEST", "mechanism must be"),
]


def test_errors_are_objects(site: Site) -> None:
    site.create("t")
    with site.page() as page:
        for message, error, said in WRONG:
            found = page.ask(id=7, **message)
            assert (found["type"], found["id"], found["error"]) == ("error", 7, error), message
            assert said in found["message"]
        assert page.ask(type="produce", id=8, topic="t", value="a")["offset"] == 0


def test_what_is_no_message(site: Site) -> None:
    with site.page() as page:
        for text in ("", "{", "[1]", "7", '{"id": []}', "[" * 100_000):
            page.websocket.send(text)
            assert page.receive()["error"] == "INVALID_REQUEST"
        page.websocket.send(b"{}")
        with pytest.raises(ConnectionClosed) as end:
            page.receive()
        assert end.value.rcvd is not None
        assert (end.value.rcvd.code, end.value.rcvd.reason) == (
            1003,
            "bytes, and ottla.json is text",
        )
    with site.page() as page:
        # It may be closed before all has been sent.
        with suppress(ConnectionClosed):
            page.websocket.send(part for part in ["a" * 300_000] * 2)
        with pytest.raises(ConnectionClosed) as end:
            page.receive()
    assert end.value.rcvd is not None
    assert end.value.rcvd.code == 1009


def test_many_commands_at_once(site: Site) -> None:
    with site.page() as page:
        for number in range(500):
            page.send(type="produce", id=number, topic="t", value=str(number))
        answers = [page.receive() for _ in range(500)]
        assert [each["id"] for each in answers] == list(range(500))
        assert [each["offset"] for each in answers] == list(range(500))


USERS = 'M required user_alice="alice-secret";'


def test_a_page_logs_in(new_broker: Callable[..., BrokerProcess]) -> None:
    issuer = Issuer()
    with serving(issuer.key_set()) as keys:
        site = Site(
            new_broker,
            protocol="SASL_PLAINTEXT",
            sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,OAUTHBEARER",
            **{"listener.name.ws.plain.sasl.jaas.config": USERS},
            **{"sasl.oauthbearer.jwks.endpoint.url": keys.url},
            **{"ottla.first.users": "SCRAM-SHA-256=[name=alice,password=secret]"},
            **{"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
            **{"super.users": "User:alice"},
        )
        alice = {"username": "alice", "password": "alice-secret"}
        ways: list[dict[str, str]] = [
            {"mechanism": "PLAIN", **alice},
            {"mechanism": "SCRAM-SHA-256", "username": "alice", "password": "secret"},
            {"mechanism": "OAUTHBEARER", "token": issuer.token("alice")},
        ]
        for number, way in enumerate(ways):
            with site.page() as page:
                found = page.ask(type="produce", id=0, topic="t", value="a")
                assert found["message"] == "log in first"
                assert page.ask(type="login", id=1, **way)["type"] == "welcome"
                assert page.ask(type="produce", id=2, topic="t", value="a")["offset"] == number
        with site.page() as page:
            page.ask(type="login", id=1, **ways[2])
            page.ask(type="subscribe", id=2, topic="t", permits=9)
            for number in range(3, 6):
                # Again, while it reads.
                again = page.ask(type="login", id=1, **ways[2])
                assert 0 < again["lifetimeMs"] <= 600_000
                assert (
                    page.ask(type="produce", id=3, topic="t", value=str(number))["offset"] == number
                )
                assert page.values(1) == [str(number)]
                time.sleep(MIN_REAUTHENTICATION_MS / 1000)
        with site.page() as page:
            page.ask(type="login", id=1, mechanism="OAUTHBEARER", token=issuer.token("bob"))
            found = page.ask(type="subscribe", id=2, topic="t")
            assert found["error"] == "TOPIC_AUTHORIZATION_FAILED"
        wrong = [
            {"mechanism": "PLAIN", **alice, "password": "wrong"},
            {"mechanism": "OAUTHBEARER", "token": issuer.token("alice", -100, iat=0)},
        ]
        for way in wrong:
            with site.page() as page:
                found = page.ask(type="login", id=1, **way)
                assert found["error"] == "SASL_AUTHENTICATION_FAILED"
                with pytest.raises(ConnectionClosed):
                    page.receive()
