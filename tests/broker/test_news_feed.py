"""What a broker is answered, by the version that it has."""

import asyncio
from uuid import UUID

from ottla.broker.news_feed import MAX_IN_ANSWER, MAX_KEPT, UNKNOWN_VERSION, NewsFeed
from ottla.controller.differences import differences
from ottla.controller.image import BrokerVanished, ClusterImage, TopicCreated, TopicImage
from ottla.controller.news_text import decode_news, decode_snapshot, encode_news

TOPIC = TopicImage("t", UUID(int=1), (), {})


def feed_with(count: int) -> tuple[ClusterImage, NewsFeed]:
    image = ClusterImage("c")
    feed = NewsFeed(image)
    for number in range(count):
        tell(image, feed, number)
    return image, feed


def tell(image: ClusterImage, feed: NewsFeed, number: int) -> None:
    news = BrokerVanished(number)
    image.apply(news)
    feed.told(news)


def test_who_has_it_all_gets_nothing() -> None:
    _, feed = feed_with(3)
    assert feed.since(3) == {"version": 3, "news": []}


def test_who_is_behind_gets_what_is_missing() -> None:
    _, feed = feed_with(3)
    assert feed.since(1) == {
        "version": 3,
        "news": [encode_news(BrokerVanished(1)), encode_news(BrokerVanished(2))],
    }
    assert len(feed.since(0)["news"]) == 3


def test_much_comes_in_several_answers() -> None:
    image, feed = feed_with(MAX_IN_ANSWER + 1)
    first = feed.since(0)
    assert len(first["news"]) == MAX_IN_ANSWER
    rest = feed.since(first["version"])
    assert [decode_news(each, image) for each in rest["news"]] == [BrokerVanished(MAX_IN_ANSWER)]
    assert rest["version"] == feed.version


def test_who_begins_is_too_far_behind_or_ahead_gets_a_snapshot() -> None:
    image, feed = feed_with(MAX_KEPT + 2)
    news = TopicCreated(TOPIC)
    image.apply(news)
    feed.told(news)
    for version in (UNKNOWN_VERSION, 0, 2, feed.version + 1):
        answer = feed.since(version)
        assert answer["version"] == feed.version
        assert "news" not in answer
        assert differences(image, decode_snapshot(answer["snapshot"])) == []
    assert len(feed.since(3)["news"]) == MAX_IN_ANSWER


def test_a_new_term_knows_nothing_of_older_versions() -> None:
    image, _ = feed_with(3)
    feed = NewsFeed(image)
    assert "snapshot" in feed.since(2)
    assert feed.since(3) == {"version": 3, "news": []}


async def test_news_wake_who_waits() -> None:
    image, feed = feed_with(1)
    waiting = asyncio.create_task(feed.wait_beyond(1, 60_000))
    while feed.waiters is None:
        await asyncio.sleep(0)
    tell(image, feed, 7)
    await asyncio.wait_for(waiting, 10)
    assert feed.waiters is None


async def test_the_end_of_the_term_wakes_who_waits_and_nobody_waits_any_more() -> None:
    _, feed = feed_with(1)
    waiting = asyncio.create_task(feed.wait_beyond(1, 60_000))
    while feed.waiters is None:
        await asyncio.sleep(0)
    feed.close()
    await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(feed.wait_beyond(1, 60_000), 10)


async def test_who_is_behind_does_not_wait() -> None:
    _, feed = feed_with(2)
    await asyncio.wait_for(feed.wait_beyond(1, 60_000), 10)
    await asyncio.wait_for(feed.wait_beyond(UNKNOWN_VERSION, 60_000), 10)
    await asyncio.wait_for(feed.wait_beyond(2, 1), 10)
