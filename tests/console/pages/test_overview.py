"""What is wrong comes first, in words with what to do."""

from __future__ import annotations

import time
from collections import Counter
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from tests.console.served_console import WAIT_S, FreshAccess, Visitor, console_of, serving

from ottla.client.admin.cluster import BrokerState, PartitionState
from ottla.client.admin.groups import ListedGroup
from ottla.client.admin.hanging_transactions import HangingTransaction
from ottla.client.admin.health import Problem, problems
from ottla.client.admin.lags import GroupLag, Lags
from ottla.client.admin.last_elections import ControllerElection, Elections, LeaderElection
from ottla.client.admin.log_dirs import LogDir, log_dirs
from ottla.client.admin.losses import DAY_MS
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.console import shared_answers
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.history import History
from ottla.console.pages import overview as overview_page
from ottla.console.pages.overview import MAX_LINKS, shown
from ottla.console.sampler import LAG, Sampler
from ottla.protocol.errors import ErrorCode
from ottla.testing import SharedBroker, Topic

HANGS = HangingTransaction("t", 0, 1, 7, 0, 0, 0)


def test_a_healthy_broker(visitor: Visitor) -> None:
    words = visitor.get("/").words
    assert "Everything works" in words
    assert "Controller 1 epoch" in words


def test_open_pages_ask_once_for_what_they_share(
    ottla_session_broker: SharedBroker, ottla_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def ask(*arguments: Any) -> Any:
            asked[name] += 1
            return function(*arguments)

        return ask

    monkeypatch.setattr(shared_answers, "FRESH_S", WAIT_S)
    for name in ("lags", "listed_groups", "min_in_sync"):
        monkeypatch.setattr(shared_answers, name, counted(name, getattr(shared_answers, name)))
    with serving(Console(Access(ottla_session_broker.bootstrap, {}, "tests"))) as visitor:
        for path in ("/", "/topics", "/groups", "/"):
            assert visitor.get(path).status == 200
        assert asked == {"lags": 1, "listed_groups": 1, "min_in_sync": 1}
        # A change is seen at once.
        visitor.post(f"/topics/{ottla_topic.name}/add-partitions", partitions=3)
        assert visitor.get("/").status == 200
    assert asked["lags"] == 2


def test_a_new_topic_is_asked_for_its_setting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def settings(_: Any, names: list[str]) -> dict[str, int]:
        asked.append(names)
        return dict.fromkeys(names, 2)

    monkeypatch.setattr(shared_answers, "min_in_sync", settings)
    access = Access("localhost:1", {}, "tests")
    visit: Any = SimpleNamespace(access=access, client=None)
    assert shared_answers.least_in_sync(visit, ["b", "a"]) == {"a": 2, "b": 2}
    assert shared_answers.least_in_sync(visit, ["b", "c"]) == {"a": 2, "b": 2, "c": 2}
    assert asked == [["a", "b"], ["c"]]


def test_a_topic_that_is_deleted_while_metadata_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"a", "gone"}

    def settings(_: Any, names: list[str]) -> dict[str, int]:
        if "gone" in names and "gone" not in known:
            raise RefusedError("read the settings", ErrorCode.unknown_topic_or_partition)
        return dict.fromkeys(names, 2)

    monkeypatch.setattr(shared_answers, "min_in_sync", settings)
    monkeypatch.setattr(shared_answers, "cluster_state", lambda *arguments: arguments[2])
    access = Access("localhost:1", {}, "tests")
    client = SimpleNamespace(metadata=lambda: SimpleNamespace(topics=set(known)))
    visit: Any = SimpleNamespace(access=access, client=client)
    shared_answers.shared_metadata(visit)
    known.remove("gone")
    found: Any = shared_answers.shared_cluster(visit)
    assert found == {"a": 2}


def test_a_problem_names_the_first_partitions() -> None:
    bad = tuple(PartitionState("t", number, None, [1], [], 1) for number in range(MAX_LINKS + 5))
    found = shown(Problem("17 partitions without a leader", "Start it.", True, bad))
    assert found.links[0] == ("t-0", "/topics/t/partitions")
    assert len(found.links) == MAX_LINKS
    assert found.more == 5


def test_disks_and_folders(ottla_session_broker: SharedBroker) -> None:
    class Healthy(SimpleNamespace):
        controller, controller_answers, brokers = 1, True, ()
        offline = under_min_isr = under_replicated = ()

    folders = [
        LogDir(1, "/fine", None, 1000, 100, ()),
        LogDir(1, "/old", None, None, None, ()),
        LogDir(2, "/tight", None, 1000, 99, ()),
        LogDir(3, "/gone", "kafka storage error", None, None, ()),
    ]
    state: Any = Healthy()
    offline, full = problems(state, None, None, folders)
    assert offline.what == "broker 3 cannot use its log folder /gone: kafka storage error"
    assert offline.is_broken
    assert full.what == "the disk of /tight of broker 2 has 9 % left"
    assert not full.is_broken
    with Client(ottla_session_broker.bootstrap) as client:
        (folder,), why = log_dirs(client, partitions={})
    assert (folder.replicas, why) == ((), {}), "the overview asks for no replica"
    assert folder.total_bytes
    assert folder.usable_bytes


def test_groups_that_fall_further_behind_are_named(
    ottla_session_broker: SharedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = FreshAccess(ottla_session_broker.bootstrap, {}, "tests")
    sampler = Sampler(access, History())
    for number in range(6):
        lags = {"<b>slow": 10 * number, "steady": 70, "idle": 10 * number}
        sampler.history.add(1000 * number, {LAG: lags})
    found = [GroupLag("steady", "t", 70, 1), GroupLag("<b>slow", "t", 50, 1)]
    found.append(GroupLag("idle", "t", 50, 1))
    monkeypatch.setattr(shared_answers, "lags", lambda _: Lags(found, True))
    groups = [ListedGroup(name, "stable", "consumer") for name in ("<b>slow", "steady")]
    groups.append(ListedGroup("idle", "empty", "consumer"))
    monkeypatch.setattr(shared_answers, "listed_groups", lambda _: groups)
    with serving(Console(access, sampler=sampler)) as visitor:
        page = visitor.get("/")
    _, _, growing = page.words.partition("Falling further behind")
    assert growing.startswith(" <b>slow: 50 records Their lag has grown")
    assert "<b>slow" not in page.text


def test_groups_that_lose_unread_records_are_named(visitor: Visitor, ottla_topic: Topic) -> None:
    old_ms = int(time.time() * 1000) - 7 * DAY_MS + 3_600_000
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap})
    # Those of other tests are there, too: the worst are named.
    for _ in range(3001):
        producer.produce(ottla_topic.name, b"x", partition=0, timestamp=old_ms)
    producer.flush()
    group = f"<b>{ottla_topic.name}"
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 1)], asynchronous=False)
    consumer.close()
    page = visitor.get("/")
    _, _, losing = page.words.partition("Retention removes within a day what they have not read")
    assert f"{group}: 3,000 records" in losing
    assert "<b>" not in page.text


def test_hanging_transactions_and_certificates_that_expire_are_risks(
    ottla_session_broker: SharedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview_page, "hanging_transactions", lambda _: [HANGS, HANGS])
    monkeypatch.setattr(overview_page, "certificate_days_left", lambda *_: {1: 29, 2: 30})
    with serving(console_of(ottla_session_broker.bootstrap)) as visitor:
        words = visitor.get("/").words
    assert "risks" in words
    assert "At risk: 2 transactions hanging: read_committed consumers and compaction stop" in words
    assert "To see and abort them: ottla transaction hanging" in words
    assert "At risk: The certificate of broker 1 expires in 29 days Put a new certificate" in words
    assert "certificate of broker 2" not in words


def test_what_takes_long_is_said_to_be_looked_for(
    ottla_session_broker: SharedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page does not wait for it, and has it when it asks again."""
    asked, answer = Event(), Event()

    def days_left(*_: Any) -> dict[int, int]:
        asked.set()
        assert answer.wait(WAIT_S)
        return {1: 3}

    monkeypatch.setattr(overview_page, "certificate_days_left", days_left)
    looked_for = "certificates that expire, disks that fill up"
    with serving(Console(Access(ottla_session_broker.bootstrap, {}, "tests"))) as visitor:
        assert looked_for in visitor.get("/").words
        assert asked.wait(WAIT_S)
        answer.set()
        until_s = time.monotonic() + WAIT_S
        while looked_for in (words := visitor.get("/").words):
            assert time.monotonic() < until_s
            time.sleep(0.05)
    assert "The certificate of broker 1 expires in 3 days" in words


class Led(SimpleNamespace):
    """A healthy cluster whose controller is broker 1."""

    cluster_id, controller, controller_epoch, controller_answers = "c", 1, 7, True
    topics, partitions, live_brokers = 1, 2, 2
    offline = under_min_isr = under_replicated = ()
    brokers = tuple(BrokerState(n, "h", n, None, True, 1, 2, 2) for n in (1, 2))
    led_by_others = (PartitionState("<b>t", 0, 2, [1, 2], [1, 2], 1),)


def elections_of(count: int) -> Elections:
    one = LeaderElection(5, "<b>t", 3, 1, 2, 9, "the former leader is down", False)
    lost = LeaderElection(4, "u", 0, 2, None, 8, "no replica that may lead is live", True)
    return Elections(1, 1, count, [ControllerElection(2, 1, 7)], [one, lost][:count])


@pytest.mark.parametrize(
    ("found", "expected", "missing"),
    [
        (
            elections_of(2),
            [
                "<b>t-3 broker 2 after broker 1 9 the former leader is down",
                "u-0 none after broker 2 8 no replica that may lead is live",
                "Broker 1 became the controller at",
            ],
            ["earlier election"],
        ),
        (elections_of(0), ["No leader was elected."], ["after broker"]),
        (elections_of(13), ["3 earlier elections of leaders."], []),
        (None, ["1 partition not led by the preferred replica"], ["became the controller"]),
        (
            RefusedError(
                "list the elections",
                ErrorCode.cluster_authorization_failed,
                None,
                Needs("Describe"),
            ),
            ["Elections are not shown", "Describe on the cluster"],
            ["became the controller"],
        ),
    ],
)
def test_elections_are_told_where_the_brokers_say_them(
    ottla_session_broker: SharedBroker,
    monkeypatch: pytest.MonkeyPatch,
    found: Elections | RefusedError | None,
    expected: list[str],
    missing: list[str],
) -> None:
    def ask(_client: Any, address: Any) -> Elections:
        assert str(address) == "h:1", "the controller"
        if isinstance(found, RefusedError):
            raise found
        if found is None:
            raise NotOttlaError("it closes the connection.")
        return found

    monkeypatch.setattr(shared_answers, "cluster_state", lambda *_: Led())
    monkeypatch.setattr(shared_answers, "last_elections", ask)
    with serving(console_of(ottla_session_broker.bootstrap)) as visitor:
        page = visitor.get("/")
    assert page.status == 200
    for each in expected:
        assert each in page.words, page.words
    for each in missing:
        assert each not in page.words


def test_brokers_that_list_no_elections_are_asked_once(
    ottla_session_broker: SharedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def ask(_client: Any, address: Any) -> Elections:
        asked.append(address)
        raise NotOttlaError("it closes the connection.")

    monkeypatch.setattr(shared_answers, "FRESH_S", 0.0)
    monkeypatch.setattr(shared_answers, "last_elections", ask)
    with serving(Console(Access(ottla_session_broker.bootstrap, {}, "tests"))) as visitor:
        for _ in range(3):
            assert visitor.get("/").status == 200
    assert len(asked) == 1
