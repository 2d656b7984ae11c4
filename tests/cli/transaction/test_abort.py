"""Which transactions may be aborted, by whom, and which are left to their coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
import pytest

from ottla.cli import confirmation
from ottla.cli.app import carry_out
from ottla.cli.failures import Failed
from ottla.cli.transaction.abort import abort_by_id, abort_in_partition
from ottla.cli.transaction.description import existing
from ottla.client.admin.hanging_transactions import coordinated, not_ended
from ottla.client.admin.transactions import (
    DescribedTransaction,
    ListedTransaction,
    OpenProducer,
)
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode

PARTITION = TopicPartition("t", 0)
OPEN = OpenProducer("t", 0, 7, 3, -1, 12, 5_000)
ONGOING = DescribedTransaction("x", 1, "Ongoing", 7, 3, 60_000, 1_000, (PARTITION,))


class Client:
    """A cluster with topic t of one partition, and what the brokers say of its transactions."""

    def __init__(
        self,
        described: Sequence[DescribedTransaction] = (),
        producers: Sequence[OpenProducer] = (),
        why: dict[tuple[str, int], str] | None = None,
    ) -> None:
        self.topics = {"t": None}
        self._described = {each.transactional_id: each for each in described}
        self._producers, self._why = list(producers), why or {}
        self.fenced: list[tuple[str, int]] = []
        self.refusal: ErrorCode | None = None
        self.aborted: list[OpenProducer] = []

    def partitions(self, _topic: str) -> list[tuple[str, int]]:
        return [PARTITION]

    def listed(
        self, _states: Sequence[str] = (), producer_ids: Iterable[int] = ()
    ) -> list[ListedTransaction]:
        wanted = set(producer_ids)
        return [
            ListedTransaction(each.transactional_id, 1, each.state, each.producer_id)
            for each in self._described.values()
            if not wanted or each.producer_id in wanted
        ]

    def described(self, names: Iterable[str]) -> dict[str, DescribedTransaction]:
        return {name: self._described[name] for name in names if name in self._described}

    def open_producers(self, _partitions: object) -> tuple[list[OpenProducer], dict[Any, str]]:
        return self._producers, self._why

    def fence(self, transactional_id: str, timeout_ms: int) -> None:
        if self.refusal is not None:
            raise RefusedError("fence", self.refusal)
        self.fenced.append((transactional_id, timeout_ms))

    def abort_in_partition(self, producer: OpenProducer) -> None:
        self.aborted.append(producer)


def by_id(client: Any, name: str = "x") -> None:
    abort_by_id(client, name, yes=True)


def in_partition(client: Any, partition: TopicPartition = PARTITION) -> OpenProducer:
    return abort_in_partition(client, partition, 7, yes=True)


def test_an_open_transaction_is_aborted_by_fencing_its_producer() -> None:
    client = Client([ONGOING])
    by_id(client)
    assert client.fenced == [("x", 60_000)]


def test_an_abort_that_takes_long_is_a_failure_with_the_way_to_look() -> None:
    client = Client([ONGOING])
    client.refusal = ErrorCode.concurrent_transactions
    with pytest.raises(Failed, match="the transaction of 'x' is not aborted yet") as raised:
        by_id(client)
    assert raised.value.hint == "To see what is left: ottla transaction describe x"
    client.refusal = ErrorCode.invalid_transaction_timeout
    with pytest.raises(RefusedError, match="invalid transaction timeout"):
        by_id(client)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("PrepareCommit", "the outcome of 'x' is decided"),
        ("PrepareAbort", "the outcome of 'x' is decided"),
        ("CompleteCommit", "'x' has no open transaction"),
        ("Empty", "'x' has no open transaction"),
    ],
)
def test_nothing_else_is_aborted(state: str, message: str) -> None:
    client = Client([ONGOING._replace(state=state)])
    with pytest.raises(Failed, match=message):
        by_id(client)
    assert client.fenced == []


def test_an_unknown_id_suggests_the_nearest() -> None:
    client: Any = Client([ONGOING._replace(transactional_id="payments")])
    assert existing(client, ["payments"])["payments"].state == "Ongoing"
    with pytest.raises(Failed, match=r"no transactional id 'payment'\. Did you mean 'payments'"):
        by_id(client, "payment")


def test_a_transaction_that_hangs_is_aborted_in_its_partition() -> None:
    """Its producer has no transactional id any more, or that id's transaction lacks it."""
    elsewhere = ONGOING._replace(partitions=(TopicPartition("u", 5),))
    for described in ([], [elsewhere], [ONGOING._replace(producer_id=8)]):
        client = Client(described, [OPEN])
        assert in_partition(client) == OPEN
        assert client.aborted == [OPEN]


@pytest.mark.parametrize(
    ("client", "partition", "message"),
    [
        (Client([ONGOING], [OPEN]), PARTITION, "the coordinator of 'x' will end it"),
        (Client([], []), PARTITION, "producer 7 has no open transaction in t-0"),
        (
            Client([], [], {PARTITION: "no leader"}),
            PARTITION,
            "cannot read the producers of t-0: no leader",
        ),
        (Client(), TopicPartition("t", 1), "t has no partition 1"),
        (Client(), TopicPartition("u", 0), "there is no topic 'u'"),
    ],
)
def test_what_does_not_hang_is_left_alone(
    client: Client, partition: TopicPartition, message: str
) -> None:
    with pytest.raises(Failed, match=message):
        in_partition(client, partition)
    assert client.aborted == []


def test_without_a_yes_nothing_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "ask", lambda *_, **__: False)
    client: Any = Client([ONGOING], [OPEN])
    with pytest.raises(click.exceptions.Exit) as left:
        abort_by_id(client, "x", yes=False)
    assert (left.value.exit_code, client.fenced) == (1, [])


@pytest.mark.parametrize(
    "given",
    [[], ["x", "--topic", "t"], ["--topic", "t", "-p", "0"], ["--topic", "t", "--producer", "7"]],
)
def test_one_way_to_name_a_transaction(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["transaction", "abort", *given]) == 2
    assert "which transaction" in capsys.readouterr().err


def test_nobody_is_asked_for_the_ids_of_no_producers() -> None:
    client: Any = Client([ONGOING])
    assert coordinated(client, []) == ({}, {})
    assert coordinated(client, [OPEN]) == ({7: "x"}, {"x": ONGOING})


def test_what_ended_meanwhile_does_not_hang() -> None:
    next_one = OpenProducer("t", 0, 7, 4, -1, 20, 5_000)
    client: Any = Client([], [next_one])
    assert not_ended(client, [OPEN, next_one]) == [next_one]
