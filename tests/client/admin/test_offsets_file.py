"""Offsets of a group as text, in Kafka's format."""

import pytest

from ottla.client.admin.offsets_file import OffsetsFileError, offsets_text, read_offsets
from ottla.client.topic_partition import TopicPartition


def test_what_is_exported_can_be_imported() -> None:
    offsets = {
        TopicPartition("orders", 10): 7,
        TopicPartition("orders", 2): 2**63 - 1,
        TopicPartition("a.b_c-d", 0): 0,
    }
    text = offsets_text(offsets)
    assert text == "a.b_c-d,0,0\norders,2,9223372036854775807\norders,10,7\n"
    assert read_offsets(text.splitlines()) == offsets


def test_lines_of_kafkas_script_are_read() -> None:
    assert read_offsets(['"orders",0,42', ""]) == {("orders", 0): 42}


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (["t,0"], "line 1 is 't,0'"),
        (["t,0,1", "t,1,-1"], "line 2 is 't,1,-1'"),
        (["t,0,1,2"], "line 1 is"),
        (["t,x,1"], "line 1 is"),
        (["t,0,1", "t,0,2"], "line 2 names t-0 a second time"),
        ([""], "there are no offsets"),
    ],
)
def test_anything_else_is_refused_with_its_line(lines: list[str], wrong: str) -> None:
    with pytest.raises(OffsetsFileError, match=wrong):
        read_offsets(lines)
