"""Logs the brokers that the controller gains or loses, and the leaders that it elects."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.controller.broker_changes import BrokersChanged
from ottla.controller.leadership import Election

MAX_NAMED: Final = 10
"""Elections and partitions with a log line each; more of them are only counted."""

log = logging.getLogger("ottla.controller")


def log_brokers(changed: BrokersChanged) -> None:
    """Logs one line for the brokers, then the elections."""
    parts = [
        f"{what} {', '.join(map(str, brokers))}"
        for what, brokers in (
            ("gone:", changed.vanished),
            ("new:", changed.appeared),
            ("restarted:", changed.bounced),
            ("with another disk:", changed.without_disk),
        )
        if brokers
    ]
    if parts:
        log.info("brokers %s", "; ".join(parts))
    log_elections(changed.elections)
    for topic, index in changed.offline[:MAX_NAMED]:
        log.warning("%s-%d is offline: no in-sync replica is alive", topic, index)
    if len(changed.offline) > MAX_NAMED:
        log.warning("%d partitions are offline", len(changed.offline))


def log_elections(elections: Sequence[Election]) -> None:
    """Unclean elections are warnings: records that only the other replicas had are lost."""
    for each in [each for each in elections if each.unclean]:
        log.warning(
            "unclean election: %s-%d is led by %d (epoch %d), which was not in sync",
            each.topic,
            each.partition,
            each.leader,
            each.leader_epoch,
        )
    clean = [each for each in elections if not each.unclean]
    for each in clean[:MAX_NAMED]:
        log.info(
            "%s-%d: leader %d after %d (epoch %d)",
            each.topic,
            each.partition,
            each.leader,
            each.former,
            each.leader_epoch,
        )
    if len(clean) > MAX_NAMED:
        log.info("%d partitions have a new leader", len(clean))
