"""What is shown of transactions, and which of them hang."""

from __future__ import annotations

import pytest

from ottla.cli.rows import document
from ottla.cli.transaction.description import show_transaction, what_next
from ottla.client.admin.hanging_transactions import which_hang
from ottla.client.admin.transaction_states import transaction_description
from ottla.client.admin.transactions import DescribedTransaction, OpenProducer
from ottla.client.topic_partition import TopicPartition

NOW_MS = 1_700_000_060_000
PLACES = (TopicPartition("t", 0), TopicPartition("t", 1))
OPEN = DescribedTransaction("x", 1, "Ongoing", 7, 3, 60_000, NOW_MS - 20_000, PLACES)
WRITTEN = OpenProducer("t", 0, 7, 3, 4, 12, NOW_MS - 5_000)


def test_an_open_transaction() -> None:
    found = transaction_description(OPEN, [WRITTEN], {PLACES[1]: "it has no leader"}, NOW_MS)
    assert document(found) == {
        "transactional_id": "x",
        "state": "Ongoing",
        "coordinator": 1,
        "producer_id": 7,
        "producer_epoch": 3,
        "timeout_ms": 60_000,
        "started_ms": NOW_MS - 20_000,
        "open_for_ms": 20_000,
        "partitions": [
            {
                "topic": "t",
                "partition": 0,
                "first_offset": 12,
                "last_write_ms": NOW_MS - 5_000,
                "error": None,
            },
            {
                "topic": "t",
                "partition": 1,
                "first_offset": None,
                "last_write_ms": None,
                "error": "it has no leader",
            },
        ],
    }


def test_another_producers_transaction_in_the_partition_is_left_out() -> None:
    other = OpenProducer("t", 0, 8, 0, -1, 2, NOW_MS)
    (first, _) = transaction_description(OPEN, [other], {}, NOW_MS).partitions
    assert first.first_offset is None


def test_an_id_at_rest_has_no_age() -> None:
    rest = OPEN._replace(state="CompleteCommit", partitions=())
    found = transaction_description(rest, [], {}, NOW_MS)
    assert found.started_ms is found.open_for_ms is None
    assert what_next(found) is None


@pytest.mark.parametrize(
    ("state", "age_ms", "said"),
    [
        ("Ongoing", 20_000, "aborts it in 40.0 s if"),
        ("Ongoing", 60_000, "Its timeout is over."),
        ("Ongoing", 20_000, "To abort it now: ottla transaction abort x"),
        ("PrepareCommit", 1, "The outcome is decided."),
        ("PrepareAbort", 1, "The outcome is decided."),
    ],
)
def test_what_ends_it(state: str, age_ms: int, said: str) -> None:
    described = OPEN._replace(state=state, started_ms=NOW_MS - age_ms)
    assert said in (what_next(transaction_description(described, [], {}, NOW_MS)) or "")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    why = {PLACES[1]: "it has no leader"}
    show_transaction(transaction_description(OPEN, [WRITTEN], why, NOW_MS))
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[:5] == [
        "x: Ongoing",
        "coordinator: broker 1",
        "producer: 7, epoch 3",
        "timeout: 1 min 0 s",
        "open for: 20.0 s, since 2023-11-14 22:14:00.000 UTC",
    ]
    table = lines[6:]
    assert max(map(len, table)) <= columns
    words = " ".join(" ".join(table).split())
    for shown in ("t", "12", "2023-11-14", "22:14:15.000", "it has no leader"):
        assert shown in words


def test_which_hang() -> None:
    unknown = OpenProducer("t", 0, 9, 0, -1, 4, NOW_MS)
    elsewhere = OpenProducer("u", 5, 7, 3, 4, 0, NOW_MS)
    ids, described = {7: "x"}, {"x": OPEN}
    assert which_hang([WRITTEN, unknown, elsewhere], ids, described) == [unknown, elsewhere]
    # The id has expired in between, or its coordinator has completed the transaction without t-0.
    assert which_hang([WRITTEN], ids, {}) == [WRITTEN]
    complete = OPEN._replace(state="CompleteAbort", partitions=())
    assert which_hang([WRITTEN], ids, {"x": complete}) == [WRITTEN]
