"""The rows and the figures of tables with keys."""

from bench.figures.delta_keys import HISTORY, PLAIN_UPSERT, UPSERT, key_of

from bench.figures import delta_keys


def test_each_key_comes_once_before_one_comes_again() -> None:
    for keys in (delta_keys.KEYS, delta_keys.KEYS // 10):
        assert len({key_of(number, keys) for number in range(keys)}) == keys
        assert key_of(keys, keys) == key_of(0, keys)
        tenths = {key_of(number, keys) * 10 // keys for number in range(20)}
        assert tenths == set(range(10))  # a batch has keys of all parts of the table


def test_each_figure_compares_two_jobs_with_its_goal() -> None:
    upsert, history = delta_keys.Upsert(), delta_keys.History()
    assert (upsert.measures[2].limit, upsert.measures[2].more_is_better) == (1.5, True)
    assert (history.measures[2].limit, history.measures[2].more_is_better) == (1.5, False)
    assert {PLAIN_UPSERT, UPSERT, HISTORY} == {"upsert-plain", "upsert-ottla", "history-ottla"}
    found = {"batches": [[100, 9_000]] * 3 + [[100, 1_000]] * 2}
    assert (upsert.value(found), history.value(found)) == (100, 1_000)
