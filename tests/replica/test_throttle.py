"""A byte rate for the replicas that a topic names, and for no others."""

from ottla.replica.throttle import Quota, Throttle


class Bench:
    def __init__(self, rate: int = 1_000) -> None:
        self.now_ms = 0
        self.rate = rate
        self.throttle = Throttle(1, lambda: self.rate, Quota(11, 1_000), lambda: self.now_ms)


def test_nothing_is_throttled_at_first() -> None:
    bench = Bench()
    bench.throttle.record("t", 0, 1 << 30)
    assert not bench.throttle.names("t", 0)
    assert not bench.throttle.holds("t", 0)


def test_only_replicas_named_for_this_broker() -> None:
    throttle = Bench().throttle
    throttle.configure("t", ("0:1", "1:2", "3:1"))
    assert [throttle.names("t", index) for index in range(4)] == [True, False, False, True]
    assert not throttle.names("u", 0)
    throttle.configure("t", ("*",))
    assert throttle.names("t", 1)
    throttle.configure("t", ())
    assert not throttle.names("t", 0)
    throttle.configure("t", ("*",))
    throttle.forget("t")
    assert not throttle.names("t", 0)


def test_over_the_quota_it_waits_for_a_lower_rate() -> None:
    bench = Bench(rate=1_000)
    bench.throttle.configure("t", ("*",))
    bench.throttle.record("t", 0, 10_000)
    assert not bench.throttle.holds("t", 0)  # 10,000 bytes in ten windows of a second
    bench.throttle.record("t", 0, 1)
    assert bench.throttle.holds("t", 0)
    bench.now_ms = 10_002
    assert not bench.throttle.holds("t", 0)


def test_a_new_rate_takes_effect_at_once() -> None:
    bench = Bench(rate=1)
    bench.throttle.configure("t", ("*",))
    bench.throttle.record("t", 0, 10_000)
    assert bench.throttle.is_exceeded
    bench.rate = 1_000_000
    assert not bench.throttle.is_exceeded


def test_old_windows_are_forgotten() -> None:
    quota = Quota(3, 1_000)
    for second in range(5):
        quota.record(600, second * 1_000)
    assert quota.bytes_a_second(4_000) == 900.0  # three windows, over the two seconds between
    assert quota.bytes_a_second(60_000) == 0.0
