"""Whether the topics of a running query are still the same."""

import pytest

from ottla.pipelines.checkpoint.topic_watch import TopicWatch
from ottla.pipelines.errors import PipelineError


def test_it_asks_at_most_once_a_second_and_fails_for_another_id() -> None:
    answers = [{"flights": "id-1"}, {"flights": "id-2"}]
    now = [10.0]
    watch = TopicWatch({"flights": "id-1"}, lambda: answers.pop(0), lambda: now[0])

    watch.check()
    assert len(answers) == 2
    now[0] = 11.0
    watch.check()
    watch.check()
    assert len(answers) == 1
    now[0] = 12.0
    with pytest.raises(PipelineError, match="'flights' was deleted and created again") as told:
        watch.check()
    assert "The one before, if it was written within the last second, may have" in str(told.value)


def test_it_says_what_to_do() -> None:
    now = [1.0]
    watch = TopicWatch({"out": "1"}, dict, lambda: now[0], advice="Use a new checkpoint")
    now[0] = 3.0
    with pytest.raises(PipelineError, match=r"not written\. Use a new checkpoint"):
        watch.check()


def test_a_query_that_has_ended_asks_once_more() -> None:
    """Its last batch may have been read after the last time that it asked."""
    now = {"flights": "id-1"}
    watch = TopicWatch({"flights": "id-1"}, lambda: now)
    watch.check_ended()
    now["flights"] = "id-2"
    with pytest.raises(PipelineError, match="the last batch may have records of the new topic"):
        watch.check_ended()


def test_brokers_that_are_away_at_the_end_change_nothing() -> None:
    def ask() -> dict[str, str]:
        raise PipelineError("b:9092 does not answer")

    TopicWatch({"flights": "id-1"}, ask).check_ended()
