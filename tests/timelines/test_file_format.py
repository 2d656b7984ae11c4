"""The timeline file: what goes in comes out, and a file cut or damaged anywhere gives a prefix."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.timelines.file_format import HEAD, MAX_SPAN, decode, encode, sound_bytes
from ottla.timelines.step import By, Kind, Step, Versions

OFFSETS = st.integers(0, 2**62)
MS = st.integers(0, 2**42)
SPANS = st.integers(0, MAX_SPAN // 2)
VERSIONS = st.builds(Versions, *[st.integers(-1, 2**31 - 1)] * 4)
NUMBERS = st.integers(-1, 2**31 - 1)
NAMES = {
    Kind.END: st.lists(st.tuples(st.integers(-1, 2**62), st.text(max_size=9)), max_size=8).map(
        tuple
    ),
    Kind.HIGH: st.none(),
    Kind.START: st.text(max_size=9),
    Kind.OPENED: st.none(),
    Kind.GROUP: st.text(max_size=9),
    Kind.SET_BACK: st.text(max_size=9),
    Kind.DELIVERED: st.tuples(*[st.text(max_size=9)] * 3),
    Kind.REPLICA: st.integers(0, 2**31 - 1).map(str),
    Kind.DIVERGED: st.integers(0, 2**31 - 1).map(str),
    Kind.IN_SYNC: st.tuples(NUMBERS, NUMBERS, st.lists(NUMBERS, max_size=5).map(tuple), NUMBERS),
}
NAMES[Kind.CLOCK] = st.none()
NAMES[Kind.FORGOTTEN] = st.tuples(st.text(max_size=9), st.text(max_size=9))
NAMES[Kind.REJECTED] = st.tuples(*[st.text(max_size=9)] * 5) | NAMES[Kind.DELIVERED]
NAMES[Kind.CUT] = NAMES[Kind.IN_SYNC]
NAMES[Kind.END_AND_HIGH] = NAMES[Kind.END]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    kind = draw(st.sampled_from(list(Kind)))
    since, before = draw(MS), draw(OFFSETS)
    first = before + draw(SPANS)
    return Step(
        kind,
        draw(NAMES[kind]),
        since,
        since + draw(SPANS),
        before,
        first,
        first + draw(SPANS),
        draw(st.booleans()),
        draw(VERSIONS) if kind is Kind.DELIVERED else None,
        draw(st.booleans()),
        draw(st.sampled_from(list(By))),
        draw(st.booleans()),
        is_plain=draw(st.booleans()),
        checkpoint=draw(st.integers(0, 255)),
    )


def test_a_file_of_an_earlier_version_says_nothing_of_transactions_and_checkpoints() -> None:
    (step,) = decode(HEAD + encode([Step(Kind.END, ((7, "a"),), 5, 5, 0, 3, 3)]))
    assert (step.is_plain, step.checkpoint) == (False, 0)


@settings(deadline=None)
@given(st.lists(steps(), max_size=30))
def test_steps_round_trip(some: list[Step]) -> None:
    data = HEAD + encode(some)
    assert decode(data) == some
    assert sound_bytes(data) == len(data)


@settings(deadline=None)
@given(st.lists(st.lists(steps(), min_size=1, max_size=4), max_size=4), st.data())
def test_a_truncated_file_gives_complete_blocks_only(
    blocks: list[list[Step]], data: st.DataObject
) -> None:
    ends, whole = [len(HEAD)], HEAD
    for block in blocks:
        whole += encode(block)
        ends.append(len(whole))
    cut = data.draw(st.integers(0, len(whole)))
    torn = whole[:cut]
    sound = sound_bytes(torn)
    assert max((end for end in ends if end <= cut), default=0) <= sound <= cut
    got = decode(torn)
    assert got == decode(whole)[: len(got)]
    assert len(got) >= sum(
        len(block) for block, end in zip(blocks, ends[1:], strict=True) if end <= cut
    )


@settings(deadline=None)
@given(
    st.lists(steps(), min_size=1, max_size=5), st.lists(steps(), min_size=1, max_size=5), st.data()
)
def test_a_damaged_byte_ends_the_file_before_its_block(
    one: list[Step], other: list[Step], data: st.DataObject
) -> None:
    first = HEAD + encode(one)
    whole = bytearray(first + encode(other))
    place = data.draw(st.integers(len(first), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    got = decode(bytes(whole))
    assert got[: len(one)] == one
    assert len(got) < len(one) + len(other)


@pytest.mark.parametrize("data", [b"", b"ottl", b"something else", bytes(100)])
def test_another_file_gives_no_steps(data: bytes) -> None:
    assert decode(data) == []
    assert sound_bytes(data) == 0


def test_a_leap_beyond_the_files_numbers_becomes_a_first_sight() -> None:
    leap = Step(Kind.GROUP, "g", 1000, 1000, 10, 2**40, 2**40)
    assert decode(HEAD + encode([leap])) == [leap._replace(before=2**40, unknown_before=True)]


def test_a_step_takes_few_bytes() -> None:
    steady = [
        Step(Kind.END_AND_HIGH, ((-1, "rdkafka"),), at, at + 99, at * 7, at * 7 + 7, at * 7 + 700)
        for at in range(0, 500, 100)
    ]
    assert len(encode(steady)) == 8 + 19 + (2 + len('[[-1,"rdkafka"]]')) + 5 * 24
