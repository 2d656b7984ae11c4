"""Requests of the kit, and brokers that do not respond."""

from __future__ import annotations

import socket

import pytest

from ottla.protocol.messages import messages_of
from ottla.testing import Broker, KitError
from ottla.testing.broker_request import NoResponseError, ask_broker, kit_client
from ottla.testing.ports import HOST, free_ports

METADATA = 3


def request() -> object:
    return messages_of(METADATA, 9, "request").MetadataRequest(topics=())


def test_the_response_has_the_version_of_the_request(ottla_broker: Broker) -> None:
    found = ask_broker(ottla_broker.bootstrap, request())
    assert (found.__version__, len(found.brokers)) == (9, 1)


def test_silence_is_no_response() -> None:
    with (
        socket.create_server((HOST, 0)) as server,
        pytest.raises(NoResponseError, match=r"no response from .* within 0\.05 s"),
    ):
        ask_broker(f"{HOST}:{server.getsockname()[1]}", request(), 0.05)


def test_nobody_listens() -> None:
    address = f"{HOST}:{free_ports(1)[0]}"
    with pytest.raises(NoResponseError, match=f"no response from {address}"):
        ask_broker(address, request())


def test_a_refusal_is_an_error_of_the_kit(ottla_broker: Broker) -> None:
    from ottla.client.admin.configs import topic_settings

    with (
        pytest.raises(KitError, match="cannot read the settings of topic 'none': ") as raised,
        kit_client(ottla_broker.bootstrap) as client,
    ):
        topic_settings(client, ["none"])
    assert not isinstance(raised.value, NoResponseError)
