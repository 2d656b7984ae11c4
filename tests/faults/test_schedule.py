from faults.anomaly import Policy
from faults.schedule import NEED_OTHERS, OF_POLICY, Kind, draw
from hypothesis import given
from hypothesis import strategies as st

SESSION_MS = 4_000


@given(
    seed=st.integers(0, 2**32),
    seconds=st.floats(0, 600),
    policy=st.sampled_from(Policy),
    brokers=st.integers(1, 7),
)
def test_a_seed_draws_the_same_faults_each_time(
    seed: int, seconds: float, policy: Policy, brokers: int
) -> None:
    steps = draw(seed, seconds, policy, brokers=brokers, session_ms=SESSION_MS)
    assert steps == draw(seed, seconds, policy, brokers=brokers, session_ms=SESSION_MS)
    assert sum(step.rest_ms + step.lasts_ms for step in steps) >= seconds * 1000
    for step in steps:
        assert step.kind in OF_POLICY[policy]
        assert 1 <= step.broker <= brokers
        assert 1 <= step.other <= brokers
        assert (step.broker == step.other) == (brokers == 1)
        assert brokers > 1 or step.kind not in NEED_OTHERS
        assert step.kind is not Kind.pause or step.lasts_ms > SESSION_MS


@given(st.integers(0, 2**32))
def test_each_kind_comes_once_before_any_repeats(seed: int) -> None:
    count = len(OF_POLICY[Policy.strict])
    steps = draw(seed, 300, Policy.strict, brokers=3, session_ms=SESSION_MS)
    assert {step.kind for step in steps[:count]} == set(OF_POLICY[Policy.strict])


def test_only_requested_kinds_are_drawn() -> None:
    kinds = (Kind.kill,)
    steps = draw(1, 60, Policy.strict, brokers=3, session_ms=SESSION_MS, kinds=kinds)
    assert {step.kind for step in steps} == {Kind.kill}
