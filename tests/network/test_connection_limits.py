from ottla.config import BrokerConfig
from ottla.network.connection_limits import ConnectionLimits


def test_the_limit_of_all_connections() -> None:
    limits = ConnectionLimits(BrokerConfig({"max.connections": "2"}))
    assert limits.admit("a") is None
    assert limits.admit("b") is None
    reason = limits.admit("c")
    assert reason is not None
    assert "max.connections" in reason
    limits.release("c")
    limits.release("a")
    assert limits.admit("c") is None
    assert (limits.count, limits.refused) == (2, 1)


def test_the_limit_of_connections_from_one_address() -> None:
    config = BrokerConfig(
        {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "10.0.0.9:2"}
    )
    limits = ConnectionLimits(config)
    assert limits.admit("a") is None
    reason = limits.admit("a")
    assert reason is not None
    assert "max.connections.per.ip" in reason
    assert limits.admit("10.0.0.9") is None
    assert limits.admit("10.0.0.9") is None
    assert limits.admit("10.0.0.9") is not None


def test_other_brokers_are_not_locked_out() -> None:
    limits = ConnectionLimits(BrokerConfig({"max.connections": "1"}))
    assert limits.admit("a") is None
    assert limits.admit("broker", is_protected=True) is None
    assert limits.admit("b") is not None
