"""The transactions of the cluster."""

from __future__ import annotations

import re
from uuid import uuid4

from confluent_kafka import Producer
from tests.console.served_console import Visitor

from ottla.testing import Topic


def test_an_open_transaction_is_shown_until_it_ends(visitor: Visitor, ottla_topic: Topic) -> None:
    name = f"<b>{uuid4().hex}"
    producer = Producer({"bootstrap.servers": ottla_topic.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(ottla_topic.name, "x", partition=0)
    producer.flush()
    url = f"/transactions?q={name[3:]}"
    found = visitor.get(url)
    assert re.search(rf"{name} Ongoing .* {ottla_topic.name}-0", found.words), found.words
    assert "<b>" not in found.text.partition("<main")[2]
    producer.commit_transaction(30)
    assert f"{name} CompleteCommit" in visitor.get(url).words
    none = visitor.get("/transactions?q=no-such-id-at-all")
    assert "No transactional id contains" in none.words
