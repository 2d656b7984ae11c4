"""What a streams group says of its topology's description, and what of it cannot be."""

from __future__ import annotations

import pytest
from simulation.streams_descriptions import DescriptionLedger
from simulation.streams_ledger import Answered

RETRY_MS = 1_000


class Bench:
    """Broker 1 is the coordinator; from `moved_ms` on, broker 2."""

    def __init__(self) -> None:
        self.moved_ms = 1 << 60
        self.found: list[str] = []
        self.ledger = DescriptionLedger(self.has_led, self.found.append, RETRY_MS)

    def has_led(self, broker: int, from_ms: int, to_ms: int) -> bool:
        return to_ms < self.moved_ms if broker == 1 else from_ms > self.moved_ms


def at(sent_ms: int, broker: int = 1) -> Answered:
    return Answered(broker, sent_ms, sent_ms + 10)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_description_that_is_kept_stays(bench: Bench) -> None:
    bench.moved_ms = 250
    ledger = bench.ledger
    ledger.asked(1, 0, at(100))
    ledger.read(0, at(110), is_its=None)
    ledger.kept(0, at(120))
    ledger.read(0, at(130), is_its=None)
    ledger.read(0, at(140), is_its=True)
    ledger.read(0, at(300, broker=2), is_its=True)
    ledger.read(0, at(300), is_its=None)
    assert (bench.found, ledger.read_count) == ([], 2), "a former coordinator may not have it"
    ledger.read(0, at(310, broker=2), is_its=None)
    assert bench.found == ["the description of topology 0, kept since 130 ms, is missing at 320 ms"]


def test_a_removed_group_has_no_description(bench: Bench) -> None:
    ledger = bench.ledger
    ledger.asked(1, 0, at(100))
    ledger.kept(0, at(120))
    ledger.removed(200)
    ledger.asked(1, 0, at(210))
    ledger.read(0, at(220), is_its=None)
    ledger.kept(0, at(195))
    ledger.read(0, at(230), is_its=None)
    assert bench.found == []


def test_the_description_of_another_topology(bench: Bench) -> None:
    bench.ledger.read(3, at(100), is_its=False)
    assert bench.found == ["topology 3 has another description at 110 ms"]


@pytest.mark.parametrize("is_refused", [False, True])
def test_nobody_is_asked_for_what_is_known(bench: Bench, is_refused: bool) -> None:
    ledger = bench.ledger
    bench.moved_ms = 250
    if is_refused:
        ledger.refused(0, at(100))
    else:
        ledger.kept(0, at(100))
    ledger.asked(1, 0, at(105))
    ledger.asked(1, 0, at(400))
    assert bench.found == []
    ledger.asked(1, 0, at(400, broker=2))
    why = "was refused" if is_refused else "is kept"
    assert bench.found == [
        f"member 1 is asked for the description of topology 0 at 410 ms, which {why} since 110 ms"
    ]


def test_two_are_asked_at_once(bench: Bench) -> None:
    bench.moved_ms = 1_500
    ledger = bench.ledger
    ledger.asked(1, 0, at(100))
    ledger.asked(2, 1, at(150))
    ledger.asked(2, 0, at(100 + RETRY_MS))
    ledger.asked(2, 0, at(1_600, broker=2))
    assert bench.found == [], "of another topology, later, of another coordinator"
    ledger.asked(1, 0, at(1_700, broker=2))
    assert bench.found == [
        "members 2 and 1 are both asked for the description of topology 0, within 1000 ms at 1710"
        " ms"
    ]
