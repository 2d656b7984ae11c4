"""`python -m website.pictures.console`: photographs the pages of the console for docs/console.md.

A broker with some orders, a group that has read them and one that has not, and Debian's Chromium.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as PartitionAt
from playwright.sync_api import ViewportSize, sync_playwright

from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.client import Client
from ottla.testing import Broker
from website.pages import ROOT

FOLDER: Final = ROOT / "docs" / "pictures" / "console"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
PAGES: Final = {
    "overview": "/",
    "topics": "/topics",
    "messages": "/topics/orders/messages",
    "journey": "/topics/orders/messages/0/30/journey",
    "group": "/group?name=billing",
}
SIZE: Final[ViewportSize] = {"width": 1100, "height": 640}
CUSTOMERS: Final = ("Ada", "Grace", "Barbara", "Radia")
ORDERS: Final = 120


def make_orders(bootstrap: str) -> None:
    """Two topics; `shipping` has read all orders, `billing` some of them."""
    with Client(bootstrap) as client:
        create_topics(client, [NewTopic("orders", 3, 1), NewTopic("payments", 6, 1)])
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop"})
    for number in range(ORDERS):
        name = CUSTOMERS[number % len(CUSTOMERS)]
        value = json.dumps({"order": number, "customer": name, "total": round(number * 1.37, 2)})
        producer.produce("orders", value, name, partition=number % 3, headers=[("source", b"web")])
        producer.produce("payments", value, name)
    producer.flush()
    for group, read in (("shipping", 40), ("billing", 25)):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        offsets = [PartitionAt("orders", partition, read) for partition in range(3)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


@contextmanager
def console(bootstrap: str) -> Iterator[str]:
    """The address of a console that runs meanwhile."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", "console", "-b", bootstrap, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def photograph(folder: Path) -> None:
    """A picture of each page, and one of a telephone in the dark."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit("There is no Chromium here. On Debian: apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with Broker() as broker, sync_playwright() as playwright:
        make_orders(broker.bootstrap)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with console(broker.bootstrap) as address:
            page = browser.new_page(viewport=SIZE)
            for name, path in PAGES.items():
                page.goto(f"{address}{path}")
                page.screenshot(path=folder / f"{name}.png")
            narrow = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark")
            narrow.goto(f"{address}{PAGES['messages']}")
            narrow.screenshot(path=folder / "telephone.png")
        browser.close()


if __name__ == "__main__":
    photograph(FOLDER)
