"""Where lists of very many partitions go on."""

from __future__ import annotations

import pytest

from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError
from ottla.console.kept_rests import MAX_RESTS, KeptRests


def test_a_rest_is_found_by_its_name_until_there_are_too_many() -> None:
    kept = KeptRests()
    rest = {TopicPartition("t", number): (0, number) for number in range(1000)}
    name = kept.keep(rest)
    assert kept.find("t", name) == rest
    assert kept.find("t", "0:5-9") is None
    assert kept.find("t", "") is None
    for topic, asked in (("other", name), ("t", f"{name}x")):
        with pytest.raises(BadFormError, match="no longer kept"):
            kept.find(topic, asked)
    names = [kept.keep({}) for _ in range(MAX_RESTS)]
    with pytest.raises(BadFormError, match="no longer kept"):
        kept.find("t", name)
    assert kept.find("t", names[0]) == {}
