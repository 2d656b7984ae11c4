"""The exception of a failed batch is kept and not logged."""

import logging
import re

import pytest

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.run.guard import BatchFailedError, BatchGuard


def test_the_exception_of_a_batch_is_kept() -> None:
    problem = ValueError("this row")

    def write(frame: object, batch: int) -> None:
        if batch == 1:
            raise problem

    guard = BatchGuard(write)
    guard(None, 0)
    with pytest.raises(BatchFailedError, match="batch 1: ValueError"):
        guard("frame", 1)

    assert (guard.error, guard.batch, guard.frame, guard.batches_done) == (problem, 1, "frame", 1)
    guard.clear()
    assert (guard.error, guard.frame) == (None, None)


def test_spark_gets_a_short_text_for_its_own_stop() -> None:
    class InterruptedBatchError(Exception):
        pass

    def write(frame: object, batch: int) -> None:
        raise InterruptedBatchError("x" * 100_000)

    guard = BatchGuard(write)
    with pytest.raises(BatchFailedError, match=r"batch 0: InterruptedBatchError$"):
        guard(None, 0)
    with pytest.MonkeyPatch.context() as patch:
        causes = [Cause("java.lang.InterruptedException")]
        patch.setattr("ottla.pipelines.run.guard.causes_of", lambda error: causes)
        with pytest.raises(BatchFailedError) as caught:
            guard(None, 0)
    assert re.search(
        "py4j.protocol.Py4JJavaError: An error occurred while calling.*InterruptedException",
        str(caught.value),
    )
    assert len(str(caught.value)) < 200


def test_py4j_does_not_log_a_failed_batch(caplog: pytest.LogCaptureFixture) -> None:
    BatchGuard(lambda frame, batch: None)
    log = logging.getLogger("py4j.clientserver")
    for error in (BatchFailedError("ours"), ValueError("another")):
        try:
            raise error
        except Exception:
            log.exception("There was an exception while executing the Python Proxy")

    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError]
