"""The last elections of leaders and controllers: Ottla's own request, which the controller answers
best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.client.addresses import Address
from ottla.client.admin.own_requests import ask_own, check_own
from ottla.client.client import Client
from ottla.client.errors import Needs
from ottla.protocol.errors import ErrorCode
from ottla.protocol.versions import ELECTIONS

WORDS: Final = {
    "unclean": "unclean: the new leader was not in sync, and what only others had is lost",
    "returned": "a replica that may lead has come back",
    "offline": "no replica that may lead is live",
    "removed": "the former leader holds no replica any more",
    "down": "the former leader is down",
    "restarted": "the former leader was restarted",
    "stops": "the former leader is stopping",
    "preferred": "the preferred replica leads again",
    "moved": "somebody asked for it, or the former leader is stopping",
}


class LeaderElection(NamedTuple):
    """`former` and `leader` are None for none; `why` is a sentence without its end."""

    at_ms: int
    topic: str
    partition: int
    former: int | None
    leader: int | None
    leader_epoch: int
    why: str
    is_bad: bool
    """Records were lost, or nobody leads."""


class ControllerElection(NamedTuple):
    """`broker` took over with this epoch."""

    at_ms: int
    broker: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Elections:
    """What one broker has seen since `since_ms`, newest first. `count`: of leaders, also those that
    are not listed.
    """

    broker: int
    since_ms: int
    count: int
    controllers: list[ControllerElection]
    leaders: list[LeaderElection]


def last_elections(client: Client, address: Address) -> Elections:
    """As the broker at this address has seen them. Raises ClientError: NotOttlaError where it is
    not Ottla's.
    """
    answer = ask_own(client, address, ELECTIONS, "elections", "lists no elections")
    refused, needs = ErrorCode.cluster_authorization_failed, Needs("Describe")
    check_own(answer, "list the elections", refused, needs)
    return Elections(
        answer["broker"],
        answer["since_ms"],
        answer["count"],
        [ControllerElection(**each) for each in answer["controllers"]],
        [_leader_election(each) for each in answer["leaders"]],
    )


def _leader_election(each: dict[str, Any]) -> LeaderElection:
    former, leader, why = each["former"], each["leader"], each["why"]
    return LeaderElection(
        each["at_ms"],
        each["topic"],
        each["partition"],
        former if former >= 0 else None,
        leader if leader >= 0 else None,
        each["leader_epoch"],
        WORDS.get(why, why),
        why in ("unclean", "offline"),
    )
