from ottla.config import BrokerConfig
from ottla.network.connection_limits import ConnectionLimits


def test_connections_are_counted_by_address() -> None:
    config = BrokerConfig(
        {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "10.0.0.9:2"}
    )
    limits = ConnectionLimits(config)
    assert limits.too_many_of("a") is None
    limits.take("a")
    reason = limits.too_many_of("a")
    assert reason is not None
    assert "max.connections.per.ip" in reason
    limits.take("10.0.0.9")
    assert limits.too_many_of("10.0.0.9") is None
    limits.take("10.0.0.9")
    assert limits.too_many_of("10.0.0.9") is not None
    limits.release("10.0.0.9")
    assert limits.too_many_of("10.0.0.9") is None
    assert limits.count == 2
