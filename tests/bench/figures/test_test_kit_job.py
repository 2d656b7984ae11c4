import time

from bench.figures import test_kit_job as job


def test_the_mock_serves_tests() -> None:
    found = job.main(job.MOCK, time.monotonic())
    assert found.keys() == {"import", "first", "further"}
    assert found["first"] > found["import"] >= 0
    assert found["further"] > 0
