"""This broker's registration in its cluster. `membership` keeps it up to date."""

from __future__ import annotations

UNREGISTERED = -1


class Registration:
    """The broker's id and epochs; -1 before the first registration."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNREGISTERED
        """The epoch of the current registration."""
        self.first_epoch = UNREGISTERED
        """The epoch of this process's first registration."""
        self.previous_epoch = UNREGISTERED
        """The epoch in which the process before stopped with everything on the disk (KIP-966); -1
        if it did not, or records may be missing for another reason."""
