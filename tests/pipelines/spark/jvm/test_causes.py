"""Chains of Python's exceptions as data; those of the JVM are shown by test_query.py."""

from ottla.pipelines.spark.jvm.causes import MAX_CAUSES, Cause, causes_of, is_interruption, trace_of


def raised(error: BaseException, cause: BaseException | None) -> BaseException:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_a_chain_is_read_from_the_outside_in() -> None:
    error = raised(ValueError("outer"), raised(KeyError("inner"), None))

    assert causes_of(error) == [Cause("ValueError", "outer"), Cause("KeyError", "'inner'")]
    assert "ValueError: outer" in trace_of(error)
    assert "KeyError: 'inner'" in trace_of(error)


def test_a_long_chain_is_cut() -> None:
    error: BaseException | None = None
    for number in range(MAX_CAUSES + 5):
        error = raised(ValueError(number), error)

    assert error is not None
    assert len(causes_of(error)) == MAX_CAUSES


def test_short_names() -> None:
    assert Cause("org.apache.Some$Inner").short_kind == "Inner"
    assert Cause("KeyError").short_kind == "KeyError"


def test_a_stop_is_no_failure() -> None:
    assert is_interruption([Cause("SparkException"), Cause("java.lang.InterruptedException")])
    assert is_interruption([Cause("SparkException", "", "SPARK_JOB_CANCELLED")])
    assert not is_interruption([Cause("java.lang.IllegalStateException")])
    assert not is_interruption([])
