"""Every page of the console in a browser, beside Apache Kafka: it shows what Kafka has, and says
what Kafka does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from components.apache_kafka import ApacheKafka
from confluent_kafka import Consumer, Producer
from playwright.sync_api import ConsoleMessage, Page, Response, expect
from tests.console.served_console import console_of, serving
from tests.system.watched_browser import PROGRAM, TEST_WITHIN_S, watched_browser

from components import fixture
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not PROGRAM, reason="no Chromium on the PATH"),
]

kafka_jars = fixture.kafka_jars
apache_kafka = fixture.apache_kafka
COUNT = 100


@pytest.fixture(scope="module")
def kafka(apache_kafka: ApacheKafka) -> str:
    """Its address. It has topic `orders` with records, and group `billing` that has read some."""
    address = apache_kafka.address
    with Client(address) as client:
        create_topics(client, [NewTopic("orders", 2, 1)])
    producer = Producer({"bootstrap.servers": address})
    for number in range(COUNT):
        producer.produce(
            "orders", f'{{"n": {number}}}', f"k{number % 10}", partition=number % 2,
            headers=[("source", b"test")],
        )  # fmt: skip
    assert producer.flush(60) == 0
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "billing", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    read: list[Any] = []
    while len(read) < 10:
        read += consumer.consume(10 - len(read), 30)
    consumer.commit(asynchronous=False)
    consumer.close()
    return address


@pytest.fixture
def page(kafka: str) -> Iterator[Page]:
    complaints: list[str] = []

    def complain(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def check(response: Response) -> None:
        if response.status >= 400:
            complaints.append(f"{response.request.method} {response.url}: {response.status}")

    with (
        serving(console_of(kafka)) as visitor,
        watched_browser() as watched,
        watched.within(TEST_WITHIN_S, lambda: "the test") as browser,
    ):
        context = browser.new_context(base_url=f"http://127.0.0.1:{visitor.port}")
        found = context.new_page()
        found.on("console", complain)
        found.on("pageerror", lambda error: complaints.append(str(error)))
        found.on("response", check)
        yield found
    assert complaints == []


def test_every_page_shows_apache_kafka(page: Page) -> None:
    main = page.locator("main")
    shown = {
        "/": "Everything works",
        "/topics": "orders",
        "/topics/new": "Create",
        "/topics/orders/messages": f"of {COUNT} offsets",
        "/topics/orders/messages?key=k3": '"n": 93',
        "/topics/orders/messages?key=k3&start=oldest&partition=1": '"n": 3',
        "/topics/orders/messages?json=n%3D57": "1 found",
        "/topics/orders/messages/0/0": '"n": 0',
        "/topics/orders/messages/0/0/journey": "orders",
        "/topics/orders/partitions": "2 partitions",
        # Kafka lists no segments: what retention removes when is said by time.
        "/topics/orders/partitions/0": "Which segments there are no request of Kafka's says",
        "/topics/orders/settings": "retention.ms",
        "/topics/orders/groups": "billing",
        "/topics/orders/produce": "Value",
        "/topics/orders/send-again": f"{COUNT} records match",
        "/groups": "billing",
        "/group?name=billing": "orders",
        "/transactions": "Transactions",
        "/pipelines": "Pipelines",
        "/security": "Users",
        "/brokers/1": "log.retention",
        "/jump?q=orders": "orders",
    }
    for path, words in shown.items():
        page.goto(path)
        expect(main).to_contain_text(words)


def test_a_search_and_a_tail_beside_apache_kafka(page: Page, kafka: str) -> None:
    page.goto("/topics/orders/messages?key=k3")
    page.click("#search")
    expect(page.locator("#progress")).to_contain_text("That is all")
    found = page.locator("#rows tr").count()
    assert found >= COUNT / 10
    page.goto("/topics/orders/messages")
    page.click("#tail")
    expect(page.locator("#progress")).to_contain_text("Live: 0 looked at")
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce("orders", "has just arrived")
    assert producer.flush(60) == 0
    expect(page.locator("#rows")).to_contain_text("has just arrived", timeout=30_000)


def test_a_topic_is_made_changed_and_deleted(page: Page) -> None:
    page.goto("/topics/new")
    page.fill("[name=name]", "made")
    page.click("main button.main")
    expect(page.locator("body")).to_contain_text("Created topic made.")
    page.goto("/topics/made/produce")
    page.fill("[name=value]", "typed")
    page.click("main button.main")
    page.goto("/topics/made/messages")
    expect(page.locator("#rows")).to_contain_text("typed")
    page.goto("/topics/made/partitions")
    page.click("summary:has-text('Delete the topic')")
    page.fill("form[action$='/delete'] [name=name]", "made")
    page.click("button.danger")
    expect(page.locator("body")).to_contain_text("Deleted topic made.")
