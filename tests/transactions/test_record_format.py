"""The bytes of `__transaction_state`; TransactionLog of Kafka 4.3.1 wrote the golden ones."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.transactions.record_format import decode, encode
from ottla.transactions.state import (
    COMPLETE_ABORT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.transactions.stored import TopicPartition, TransactionRecord, TransactionValue

KEY = bytes.fromhex("000000096f72646572732dc3a9")
T0_T7 = frozenset({TopicPartition("t", 0), TopicPartition("t", 7)})
NONE: frozenset[TopicPartition] = frozenset()
GOLDEN = [
    (
        0,
        TransactionValue(1000, 0, 60_000, EMPTY, NONE, 1_700_000_000_000),
        "000000000000000003e800000000ea6000ffffffff0000018bcfe56800ffffffffffffffff",
    ),
    (
        1,
        TransactionValue(1000, 0, 60_000, EMPTY, NONE, 1_700_000_000_000, -1, 1000),
        "000100000000000003e800000000ea6000000000018bcfe56800ffffffffffffffff"
        "01000800000000000003e8",
    ),
    (
        0,
        TransactionValue(1000, 3, 60_000, ONGOING, T0_T7, 1_700_000_000_002, 1_700_000_000_001),
        "000000000000000003e800030000ea6001000000010001740000000200000000000000070000018bcfe568020000"
        "018bcfe56801",
    ),
    (
        1,
        TransactionValue(
            1000, 3, 60_000, ONGOING, T0_T7, 1_700_000_000_002, 1_700_000_000_001, 999
        ),
        "000100000000000003e800030000ea6001020274030000000000000007000000018bcfe568020000018bcfe56801"
        "01000800000000000003e7",
    ),
    (
        1,
        TransactionValue(
            1000,
            32767,
            60_000,
            PREPARE_COMMIT,
            T0_T7,
            1_700_000_000_002,
            1_700_000_000_001,
            1000,
            1001,
            2,
        ),
        "000100000000000003e87fff0000ea6002020274030000000000000007000000018bcfe568020000018bcfe56801"
        "03000800000000000003e8010800000000000003e902020002",
    ),
    (
        1,
        TransactionValue(
            1001,
            0,
            60_000,
            COMPLETE_ABORT,
            NONE,
            1_700_000_000_002,
            1_700_000_000_001,
            1000,
            client_version=2,
        ),
        "000100000000000003e900000000ea6005010000018bcfe568020000018bcfe56801"
        "02000800000000000003e802020002",
    ),
]


@pytest.mark.parametrize(("version", "value", "content"), GOLDEN)
def test_as_kafka_writes_it(version: int, value: TransactionValue, content: str) -> None:
    record = TransactionRecord("orders-é", value)
    assert encode(record, version) == (KEY, bytes.fromhex(content))
    assert decode(KEY, bytes.fromhex(content)) == record


def test_tombstone() -> None:
    record = TransactionRecord("orders-é", None)
    assert encode(record, 1) == (KEY, None)
    assert decode(KEY, None) == record


def test_last_epoch_is_not_stored() -> None:
    value = GOLDEN[0][1]._replace(last_epoch=5)
    decoded = decode(*encode(TransactionRecord("t", value), 1))
    assert decoded is not None
    assert decoded.value is not None
    assert decoded.value.last_epoch == -1


def test_key_of_another_type() -> None:
    assert decode(b"\0\1" + KEY[2:], None) is None


@pytest.mark.parametrize(
    "content",
    [
        b"\0\2" + bytes.fromhex(GOLDEN[1][2])[2:],  # version
        bytes.fromhex(GOLDEN[0][2]).replace(b"\xea\x60\x00", b"\xea\x60\x06"),  # state
        bytes.fromhex(GOLDEN[1][2]).replace(b"\1\0\x08", b"\1\0\x07"),  # size of a tag
    ],
)
def test_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"version 2|state 6|tag 0|bytes"):
        decode(KEY, content)


@given(
    st.builds(
        TransactionValue,
        st.integers(0, 2**63 - 1),
        st.integers(0, 32767),
        st.integers(1, 2**31 - 1),
        st.sampled_from([state for state in TransactionState if state is not EMPTY]),
        st.frozensets(st.builds(TopicPartition, st.text(max_size=9), st.integers(0, 99))),
        st.integers(0, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.sampled_from([0, 2]),
        last_epoch=st.just(-1),
    ),
    st.text(max_size=9),
)
def test_round_trip(value: TransactionValue, transactional_id: str) -> None:
    record = TransactionRecord(transactional_id, value)
    assert decode(*encode(record, 1)) == record


@given(st.binary(max_size=80))
def test_any_bytes(content: bytes) -> None:
    with suppress(ValueError):
        decode(KEY, content)
