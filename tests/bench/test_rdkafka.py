import sys

import pytest
from bench.measure import ClientError

from bench import rdkafka

PRODUCED = (
    "% 213837 messages produced (213837000 bytes), 100000 delivered (offset 99999, 0 failed) in"
    " 2002ms: 49950 msgs/s and 49.95 MB/s, 225 produce failures, 86163 in queue, no compression\n"
    "% 300000 messages produced (300000000 bytes), 300000 delivered (offset 299999, 0 failed) in"
    " 2953ms: 101576 msgs/s and 101.58 MB/s, 225 produce failures, 0 in queue, no compression\n"
)
CONSUMED = "% 300000 messages (300000000 bytes) consumed in 342ms: 876975 msgs/s (876.98 MB/s)\n"


def test_the_producers_last_line_has_the_result() -> None:
    assert rdkafka.produced(PRODUCED) == (101.58, 101576.0)


def test_lost_records_are_an_error() -> None:
    with pytest.raises(ClientError, match="did not deliver"):
        rdkafka.produced(PRODUCED.replace("0 failed) in 2953", "7 failed) in 2953"))
    with pytest.raises(ClientError):
        rdkafka.produced(PRODUCED, 300_001)
    with pytest.raises(ClientError):
        rdkafka.produced("nothing")


def test_a_consumer_must_get_all_records() -> None:
    assert rdkafka.consumed(CONSUMED, 300_000) == (876.98, 876975.0)
    with pytest.raises(ClientError, match="did not get 300001"):
        rdkafka.consumed(CONSUMED, 300_001)


def test_a_client_that_fails_or_hangs_raises() -> None:
    with pytest.raises(ClientError, match="ended with 3"):
        rdkafka.run([sys.executable, "-c", "raise SystemExit(3)"])
    assert rdkafka.run([sys.executable, "-c", "raise SystemExit(3)"], codes=(0, 3)) == ""
    with pytest.raises(ClientError, match="did not end"):
        rdkafka.run([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.2)
