"""Why a group rebalanced: Ottla's own request, which every broker answers with what it knows.

A broker knows what happened while it was the group's coordinator; what they know is put together
here, by time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ottla.client.addresses import Address
from ottla.client.admin.journeys import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import ClientError, ClosedError, NotKafkaError
from ottla.protocol.versions import GROUP_HISTORY

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """`entries`: as `ottla.groups.history.fold` has them, each with its `broker` and `number`,
    oldest first. `unasked`: brokers that did not answer, and why.
    """

    entries: list[Document]
    unasked: dict[int, str]


def group_history(client: Client, group: str) -> GroupHistory:
    """Of all brokers. Raises ClientError: NotOttlaError where they are not Ottla's, and that of the
    first broker where none answers.
    """
    brokers = client.metadata([]).brokers
    entries: list[Document] = []
    failures: dict[int, ClientError] = {}
    for broker_id in sorted(brokers):
        try:
            entries += _ask(client, brokers[broker_id].address, group)
        except ClientError as error:
            failures[broker_id] = error
    if failures and len(failures) == len(brokers):
        raise next(iter(failures.values()))
    entries.sort(key=lambda each: (each["at_ms"], each["broker"]))
    return GroupHistory(entries, {each: error.message for each, error in failures.items()})


def _ask(client: Client, address: Address, group: str) -> list[Document]:
    body = json.dumps({"group_history": 1, "group": group}).encode()
    try:
        answer = json.loads(client.ask_at_bytes(address, GROUP_HISTORY, body))
    except ClosedError:
        raise NotOttlaError(
            f"the broker at {address} keeps no history of groups: it is not an Ottla broker, or an"
            " older one."
        ) from None
    except (NotKafkaError, ValueError):
        raise NotOttlaError(f"the server at {address} is not an Ottla broker.") from None
    if not isinstance(answer, dict) or "group_history" not in answer:
        raise NotOttlaError(f"the server at {address} is not an Ottla broker.")
    if "error" in answer:
        raise ClientError(f"{answer['error']['message']}.")
    return [each | {"broker": answer["broker"]} for each in answer["entries"]]
