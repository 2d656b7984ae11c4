"""Why a group rebalanced: Ottla's own request, which every broker answers with what it knows.

A broker knows what happened while it was the group's coordinator; what they know is put together
here, by time.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.addresses import Address
from ottla.client.admin.own_requests import Document, ask_own, check_own
from ottla.client.client import Client
from ottla.client.errors import ClientError, Needs
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import GROUP_HISTORY


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
    name, lacks = "group_history", "keeps no history of groups"
    answer = ask_own(client, address, GROUP_HISTORY, name, lacks, {"group": group})
    doing, needs = f"read the history of group {group!r}", Needs("Describe", group)
    check_own(answer, doing, ErrorCode.group_authorization_failed, needs)
    return [each | {"broker": answer["broker"]} for each in answer["entries"]]
