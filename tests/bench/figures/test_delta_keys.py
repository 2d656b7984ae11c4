"""The rows and the figures of tables with keys."""

from bench.figures.comparison import Taken
from bench.figures.delta_keys import key_of

from bench.figures import delta_keys


def test_each_key_comes_once_before_one_comes_again() -> None:
    for keys in (delta_keys.KEYS, delta_keys.KEYS // 10):
        assert len({key_of(number, keys) for number in range(keys)}) == keys
        assert key_of(keys, keys) == key_of(0, keys)
        tenths = {key_of(number, keys) * 10 // keys for number in range(20)}
        assert tenths == set(range(10))  # a batch has keys of all parts of the table


def test_each_figure_has_its_goal() -> None:
    upsert, history = delta_keys.Upsert(), delta_keys.History()

    goals = {one.name: (one.limit, one.more_is_better) for one in upsert.measures if one.limit}

    assert goals == {"delta-upsert, share": (1.3, True), "delta-upsert, share CPU": (0.8, False)}
    assert (history.measures[2].limit, history.measures[2].more_is_better) == (1.5, False)
    found = {"cpu_before": 0.0, "batches": [[100, 9_000, 3.0]] * 3 + [[100, 1_000, 5.0]] * 2}
    assert upsert.value(found, 3) == Taken(100, 10_000)
    assert history.value(found, 3) == Taken(1_000)
