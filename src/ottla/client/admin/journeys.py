"""The journey of a message: Ottla's own request, which a partition's leader answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client.addresses import Address
from ottla.client.admin.own_requests import NotOttlaError, read_own
from ottla.client.client import Client
from ottla.client.errors import ClosedError, NotKafkaError
from ottla.client.patience import Retry
from ottla.protocol.versions import JOURNEY

Answer = dict[str, Any]


def ask_journey(
    client: Client,
    question: Mapping[str, Any],
    joined: Callable[[Sequence[Answer]], Answer],
) -> Answer:
    """The document of the leader of the partition that the question is about, whichever broker is
    asked first; of all leaders if it is about several, made one by `joined`. Without a leader, that
    of the first broker.
    """
    first = _ask(client, None, question)
    if not _is_elsewhere(first):
        return first
    retry = Retry(client.patience)
    while True:
        leaders = _leaders(client, question)
        answers = [_ask(client, address, question) for address in leaders]
        # Leadership may have moved between the two requests.
        if not answers or not all(map(_is_led_by_another, answers)) or retry.is_over:
            return joined(answers) if answers else first
        retry.wait()


def _is_led_by_another(answer: Answer) -> bool:
    return bool(answer.get("error", {}).get("code") == "not_leader")


def _is_elsewhere(answer: Answer) -> bool:
    """Whether other brokers must be asked, instead or as well."""
    return _is_led_by_another(answer) or bool(answer.get("elsewhere"))


def _leaders(client: Client, question: Mapping[str, Any]) -> list[Address]:
    """The leaders of the requested partitions; empty if there is none."""
    name, wanted = question["topic"], question.get("partition")
    metadata = client.metadata([name])
    leaders = {
        leader
        for (_, index), leader in metadata.leaders.items()
        if wanted is None or index == wanted
    }
    return [metadata.brokers[each].address for each in sorted(leaders & metadata.brokers.keys())]


def _ask(client: Client, address: Address | None, question: Mapping[str, Any]) -> Answer:
    body = json.dumps(question).encode()
    where = client.bootstrap if address is None else str(address)
    try:
        if address is None:
            answer = client.ask_any_bytes(JOURNEY, body)
        else:
            answer = client.ask_at_bytes(address, JOURNEY, body)
    except ClosedError:
        raise NotOttlaError(
            f"the server at {where} is not an Ottla broker: it closed the connection."
        ) from None
    except NotKafkaError:
        raise NotOttlaError(f"the server at {where} is not an Ottla broker.") from None
    return read_own(answer, "journey", where)
