"""A long list in parts."""

from ottla.cli.chunks import in_chunks


def test_every_item_is_in_one_part() -> None:
    assert [list(part) for part in in_chunks(range(5), 2)] == [[0, 1], [2, 3], [4]]
    assert list(in_chunks([], 2)) == []
