"""The console in a real browser: live parts, keys, narrow, dark, and nothing of a record runs."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Response,
    expect,
)
from playwright.sync_api import Error as PlaywrightError
from tests.console.served_console import FreshAccess, console_of, serving
from tests.system.watched_browser import (
    PROGRAM,
    TEST_WITHIN_S,
    WatchedBrowser,
    watched_browser,
)

from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client
from ottla.console.console import Console
from ottla.console.history import History
from ottla.console.sampler import Sampler
from ottla.testing import Broker, Topic

pytestmark = pytest.mark.skipif(not PROGRAM, reason="no Chromium on the PATH")
STEP_WITHIN_S = 60.0
"""What it waits for ends within 1.5 seconds, and a machine may be busy."""
TABS = ("messages", "partitions", "settings", "groups", "produce")
EVIL = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"

THINGS = ", ".join(
    f"{each}:visible:not(form[action^='/brokers'] *, form[action^='/security/quotas'] *)"
    for each in ("a", "button", "summary", "input", "select", "textarea")
)
INPUTS = (
    *("", "orders", "payments", "a", "0", "-1", "7", "99999999999999999999", "1e309", "15m"),
    *(
        EVIL,
        "%00",
        "../..",
        "\u202e\U0001f600",
        "x" * 3000,
        '{"a": [1]}',
        "[",
        "a.b=1",
        "name=value",
    ),
)


@dataclass
class Reader:
    """A page, and what its scripts complained of."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.base}{path}")
        return self.page


@pytest.fixture(scope="module")
def watched() -> Iterator[WatchedBrowser]:
    with watched_browser() as found:
        yield found


@pytest.fixture
def browser(watched: WatchedBrowser) -> Iterator[Browser]:
    with watched.within(TEST_WITHIN_S, lambda: "the test") as found:
        yield found


@pytest.fixture
def reader(browser: Browser, ottla_topic: Topic) -> Iterator[Reader]:
    with serving(console_of(ottla_topic.bootstrap)) as visitor:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        found = Reader(context.new_page(), f"http://127.0.0.1:{visitor.port}")

        def complain(message: ConsoleMessage) -> None:
            # A page that says what failed has the status of that.
            if message.type == "error" and "Failed to load resource" not in message.text:
                found.complaints.append(message.text)

        found.page.on("console", complain)
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        yield found
        context.close()
        assert found.complaints == []


def produce(topic: Topic, *values: str, **more: Any) -> None:
    producer = Producer({"bootstrap.servers": topic.bootstrap})
    for value in values:
        producer.produce(topic.name, value, **more)
    producer.flush()


def test_nothing_of_a_record_runs(reader: Reader, ottla_topic: Topic) -> None:
    produce(ottla_topic, EVIL, key=EVIL, headers=[(EVIL, EVIL.encode())])
    page = reader.open(f"/topics/{ottla_topic.name}/messages")
    expect(page.locator("#rows")).to_contain_text("<script>document.title")
    page.click("#tail")
    expect(page.locator("#progress")).to_contain_text("looked at")
    produce(ottla_topic, f"{EVIL} again", key=EVIL, headers=[(EVIL, EVIL.encode())])
    expect(page.locator("#rows")).to_contain_text("again")
    page.click("#rows a")
    expect(page.locator("pre").first).to_contain_text("<script>document.title")
    reader.open(f"/group?name={EVIL}")
    expect(page.locator("main")).to_contain_text("<script>")
    reader.open(f"/topics?q={EVIL}")
    assert "run" not in page.title()
    # A group may have any name.
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": EVIL})
    consumer.commit(offsets=[PartitionAt(ottla_topic.name, 0, 1)], asynchronous=False)
    consumer.close()
    of_topic = f"/topics/{ottla_topic.name}/groups"
    for path in ("/groups?q=onerror", of_topic, f"/group?name={EVIL}"):
        reader.open(path)
        expect(page.locator("main")).to_contain_text("<script>document.title")
        assert page.locator("main img, main script").count() == 0, path
        assert page.title() != "run", path
    assert page.locator("main img, main script").count() == 0


def test_a_tail_and_a_search(reader: Reader, ottla_topic: Topic) -> None:
    produce(ottla_topic, *(f"value-{number}" for number in range(2000)))
    page = reader.open(f"/topics/{ottla_topic.name}/messages?text=value-1..9&start=oldest")
    page.click("#search")
    expect(page.locator("#progress")).to_contain_text("100 found; looked at 2,000 records, 100 %")
    assert page.locator("#rows tr").count() == 100
    page.click("#tail")
    expect(page.locator("#progress")).to_contain_text("looked at")
    produce(ottla_topic, "value-1xx9")
    expect(page.locator("#rows")).to_contain_text("value-1xx9")
    page.click("#stop")
    expect(page.locator("#progress")).to_contain_text("Stopped")


def test_a_tail_of_more_than_it_can_show(reader: Reader, ottla_topic: Topic) -> None:
    """The page says what it has skipped, keeps few rows, and still does what its reader asks."""
    page = reader.open(f"/topics/{ottla_topic.name}/messages")
    page.click("#tail")
    expect(page.locator("#progress")).to_contain_text("looked at")
    stop = threading.Event()

    def produce_many() -> None:
        producer = Producer({"bootstrap.servers": ottla_topic.bootstrap, "linger.ms": 20})
        while not stop.wait(0.05):
            for number in range(1000):
                producer.produce(ottla_topic.name, f"value {number} " + "x" * 100, "k")
            producer.flush()

    thread = threading.Thread(target=produce_many)
    thread.start()
    try:
        progress = page.locator("#progress")
        expect(progress).to_have_text(re.compile("skipped .too fast to show."), timeout=30_000)
        page.keyboard.press("?")
        expect(page.locator("dialog[open]")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#rows tr").nth(100)).to_be_attached(timeout=30_000)
        page.click("#stop")
        expect(progress).to_contain_text("Stopped")
    finally:
        stop.set()
        thread.join()
    assert page.locator("#rows tr").count() <= 1000
    page.click("#rows a >> nth=0")
    expect(page.locator("main")).to_contain_text("value")


def test_a_broker_that_goes_away_while_a_page_is_live(browser: Browser) -> None:
    """The page says so, and comes back by itself: nobody loads it again."""
    loads: list[str] = []
    with Broker() as broker, serving(console_of(broker.bootstrap)) as visitor:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{visitor.port}/")
        expect(page.locator("main")).to_contain_text("Everything works")
        page.on("framenavigated", lambda frame: loads.append(frame.url))
        broker.process.kill()
        alert = page.locator("main [role=alert]")
        expect(alert).to_contain_text("The cluster does not respond", timeout=60_000)
        expect(alert).to_contain_text("comes back by itself")
        broker.process.start()
        expect(page.locator("main")).to_contain_text("Everything works", timeout=60_000)
        page.close()
    assert loads == []


def test_keys(reader: Reader, ottla_topic: Topic) -> None:
    produce(ottla_topic, "a", "b", "c")
    page = reader.open("/")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/topics")
    page.keyboard.press("/")
    page.keyboard.type(ottla_topic.name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/topics/{ottla_topic.name}/messages")
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/messages/0/2")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url("**/groups")


def test_a_page_in_the_background_asks_nothing(reader: Reader) -> None:
    page = reader.open("/groups")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => window.isHidden });"
        "window.isHidden = true;"
        "htmx.ajax('GET', '/groups', { source: document.getElementById('live') });"
    )
    page.evaluate("fetch('/places?q=x')")  # what was sent before it would have been seen
    expect(page.locator("#live")).to_be_attached()
    assert not [each for each in asked if each.endswith("/groups")]
    with page.expect_request("**/groups"):
        page.evaluate(
            "window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))"
        )


def test_charts_are_drawn(browser: Browser, ottla_topic: Topic) -> None:
    access = FreshAccess(ottla_topic.bootstrap, {}, "tests")
    sampler = Sampler(access, History())
    complaints: list[str] = []
    with serving(Console(access, sampler=sampler)) as visitor:
        for number in range(3):
            produce(ottla_topic, *("x" * number))
            sampler.sample()
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"http://127.0.0.1:{visitor.port}/topics/{ottla_topic.name}/partitions")
        expect(page.locator(".chart canvas")).to_be_visible()
        expect(page.locator(".chart")).to_have_attribute("aria-label", re.compile("now .*at most"))
        page.close()
    assert complaints == []


# test_console_every_page.py looks at the shop's pages in both.
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.full)])
def test_every_page_fits_a_telephone(reader: Reader, ottla_topic: Topic, scheme: Any) -> None:
    produce(ottla_topic, "x" * 3000, key="k" * 300)
    page, name, group = reader.page, ottla_topic.name, f"{'long-' * 30}{scheme}"
    consumer = Consumer({"bootstrap.servers": ottla_topic.bootstrap, "group.id": group})
    consumer.commit(offsets=[PartitionAt(name, 0, 0)], asynchronous=False)
    consumer.close()
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme=scheme)
    for path in (
        "/", "/topics", "/topics/new", "/groups", "/pipelines", "/security", "/nowhere",
        "/brokers/1", "/transactions", "/schemas", f"/group?name={group}",
        *(f"/topics/{name}/{tab}" for tab in TABS),
        f"/topics/{name}/messages/0/0", f"/topics/{name}/partitions/0",
        f"/topics/{name}/messages/0/0/journey", f"/topics/{name}/send-again",
    ):  # fmt: skip
        reader.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", colour)[0]) < 128) is (scheme == "dark"), path


def test_times_are_those_of_the_reader(browser: Browser, ottla_topic: Topic) -> None:
    produce(ottla_topic, "x", timestamp=1_700_000_000_000)
    with serving(console_of(ottla_topic.bootstrap)) as visitor:
        context = browser.new_context(timezone_id="Asia/Tokyo")
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{visitor.port}/topics/{ottla_topic.name}/messages")
        time = page.locator("#rows time")
        expect(time).to_have_text("2023-11-15 07:13:20.000")
        expect(time).to_have_attribute("title", "2023-11-14 22:13:20.000 UTC")
        context.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("clicks", [75, pytest.param(1_000, marks=pytest.mark.full)])
def test_random_clicks_and_inputs(watched: WatchedBrowser, clicks: int) -> None:
    """With a broker of its own, and a seed: the same things are chosen each time, as far as what
    the pages show is the same. What limits the broker's own clients is left alone.
    """
    choose, complaints = random.Random(4711), list[str]()
    with Broker() as broker, serving(console_of(broker.bootstrap)) as visitor:
        base = f"http://127.0.0.1:{visitor.port}"
        with Client(broker.bootstrap) as client:
            create_topics(client, [NewTopic(name, 2, 1) for name in ("orders", "payments")])
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(200):
            producer.produce("orders", choose.choice(INPUTS), str(number))
        producer.flush()
        done = ["the first page"]
        with watched.within(STEP_WITHIN_S, lambda: done[-1]) as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 1000})
            page = context.new_page()
            page.goto(base)
        page.set_default_timeout(1500)

        def complain(message: ConsoleMessage) -> None:
            if message.type == "error" and "Failed to load resource" not in message.text:
                complaints.append(f"{page.url}: {message.text}")

        def check(response: Response) -> None:
            if response.status == 500:
                complaints.append(f"{response.request.method} {response.url}: 500")

        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
        page.on("response", check)
        touched = 0
        for number in range(clicks):
            with watched.within(STEP_WITHIN_S, lambda: "\n".join(done[-5:])):
                done.append(f"{page.url}: the things of step {number + 1}")
                things = page.locator(THINGS)
                count = things.count()
                # A page that is live may have changed since it was counted, or go to another.
                with suppress(PlaywrightError):
                    if not count or number % 50 == 49:
                        page.goto(base + choose.choice(("/", "/topics/orders/messages", "/topics")))
                    else:
                        touch(page, things.nth(choose.randrange(count)), choose, done)
                        touched += 1
            assert complaints == [], f"after {number + 1} clicks and inputs"
        assert visitor.get("/").status == 200
        # The others were covered, hidden or gone by then.
        assert touched > clicks / 4
        with watched.within(STEP_WITHIN_S, lambda: "the end"):
            context.close()


def touch(page: Page, thing: Locator, choose: random.Random, done: list[str]) -> None:
    """Click it, or type something into it and perhaps send it; `done` is told before."""
    tag, words = thing.evaluate(
        "each => [each.type === 'checkbox' ? 'box' : each.localName, each.outerHTML.slice(0, 300)]"
    )
    done.append(f"{page.url}: {words}")
    if tag in ("input", "textarea"):
        thing.fill(choose.choice(INPUTS))
        if choose.random() < 0.5:
            thing.press("Enter")
    elif tag == "select":
        options = thing.locator("option").count()
        if options:  # else a live page has replaced it meanwhile
            thing.select_option(index=choose.randrange(options))
    else:
        thing.click(no_wait_after=True)
    page.wait_for_load_state("domcontentloaded")
