"""Errors that keep a broker from joining its cluster, or end it there."""


class StartError(Exception):
    """This broker cannot join; the text is one line for the operator."""


class IdTakenError(StartError):
    """Another process is registered under this broker's id."""

    def __init__(self, broker_id: int, whose: str, address: str) -> None:
        super().__init__(
            f"node.id={broker_id}: {whose} runs at {address}: stop it, or give this one another id"
            " (--id) and another folder"
        )
        self.address = address
