"""Changes of the image reach what throttles clients."""

from types import SimpleNamespace
from typing import Any

from ottla.cluster.client_quotas import ClientQuotas
from ottla.config import BrokerConfig
from ottla.controller.image import NO_CONFIG, ConfigImage, QuotaConfigChanged, UserConfigChanged
from ottla.network.throttling import Throttling
from ottla.quotas.entity import Kind


def test_quotas_begin_and_end_with_their_nodes() -> None:
    clock: Any = SimpleNamespace(monotonic_ms=lambda: 0)
    throttling = Throttling(BrokerConfig({}), clock, lambda session: False)
    quotas = ClientQuotas(throttling)

    def limited() -> list[bool]:
        has = throttling.meters.has
        return [
            throttling.is_on,
            has(Kind.PRODUCE, "a", "x"),
            has(Kind.FETCH, "b", "c"),
            throttling.connections.is_on,
        ]

    quotas.notified(UserConfigChanged("a", ConfigImage({"SCRAM-SHA-256": "salt"}, 0)))
    quotas.notified(QuotaConfigChanged("users/b/clients", ConfigImage({}, 0)))
    assert limited() == [False, False, False, False]
    quotas.notified(UserConfigChanged("a", ConfigImage({"producer_byte_rate": "5"}, 1)))
    quotas.notified(
        QuotaConfigChanged("users/b/clients/c", ConfigImage({"consumer_byte_rate": "5"}, 0))
    )
    quotas.notified(
        QuotaConfigChanged("ips/<default>", ConfigImage({"connection_creation_rate": "5"}, 0))
    )
    assert limited() == [True, True, True, True]
    quotas.notified(UserConfigChanged("a", ConfigImage({}, 2)))
    assert limited() == [True, False, True, True]
    quotas.notified(QuotaConfigChanged("users/b/clients/c", NO_CONFIG))
    quotas.notified(QuotaConfigChanged("ips/<default>", NO_CONFIG))
    assert limited() == [False, False, False, False]
