"""Which broker a request names as its sender, for tests that call handlers without a connection."""

from typing import Any

from ottla.network.client_session import ClientSession


def named_broker(request: Any) -> int | None:
    """The id in a request of a broker; None in a client's."""
    state = getattr(request, "replica_state", None)
    places = (request, "broker_id"), (state, "replica_id"), (request, "replica_id")
    for holder, name in places:
        number = getattr(holder, name, -1)
        if number >= 0:
            return int(number)
    return None


def session_of(
    request: Any, listener: str = "PLAINTEXT", host: str = "127.0.0.1", port: int = 9092
) -> ClientSession:
    """A session of the broker that the request names, or of a client."""
    number = named_broker(request)
    return ClientSession(1, "127.0.0.1", listener, host, port, broker_id=number)
