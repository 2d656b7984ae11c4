"""What is read again of a batch for its rejected rows."""

from dataclasses import dataclass
from typing import Any

from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.run.rejects import Suspect, suspect
from ottla.pipelines.source.source import Source

SOURCE = Source("flights", KafkaSettings("localhost:9092"), {})
SPAN = ({0: 100, 1: 5_000, 2: -2}, {0: 9_000, 1: 6_000, 2: 10})
OFFSETS = 8_900 + 1_000 + 10


@dataclass
class Block:
    partition: int
    block: int

    def getInt(self, _: int) -> int:  # noqa: N802 - Java's name
        return self.partition

    def getLong(self, _: int) -> int:  # noqa: N802 - Java's name
        return self.block


@dataclass
class Blocks:
    """As Spark's JVM has them."""

    blocks: list[Block]

    def size(self) -> int:
        return len(self.blocks)

    def apply(self, index: int) -> Block:
        return self.blocks[index]


def counted(rejected: int, read: int, *blocks: tuple[int, int]) -> dict[str, Any]:
    return {"rejected": rejected, "read": read, "blocks": Blocks([Block(*one) for one in blocks])}


def test_a_batch_without_rejected_rows_is_not_read_again() -> None:
    assert suspect(SOURCE, SPAN, counted(0, 50), True) is None
    assert suspect(SOURCE, SPAN, counted(0, OFFSETS), False) is None
    assert suspect(SOURCE, None, counted(1, 1), True) is None


def test_only_the_blocks_of_rejected_rows_are_read_again() -> None:
    found = suspect(SOURCE, SPAN, counted(3, 50, (0, 4), (0, 2), (1, 4)), True)

    assert found == Suspect(SOURCE, {0: 2_048, 1: 5_000}, {0: 5_120, 1: 5_120}, 3)


def test_a_batch_that_was_not_read_to_its_end_is_read_again_whole() -> None:
    whole = Suspect(SOURCE, *SPAN, None)
    assert suspect(SOURCE, SPAN, counted(0, OFFSETS - 1), False) == whole
    assert suspect(SOURCE, SPAN, None, True) == whole
