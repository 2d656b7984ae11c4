"""A transactional producer that commits every few milliseconds.

`python -m bench.transacting ADDRESS TOPIC COMMIT_MS WARM_UP_SECONDS SECONDS`: writes records to
partition 0 as fast as the client queues them, in transactions that are queued for COMMIT_MS each.
Prints one line of JSON: the records committed after the warm-up, the seconds that they took, and
for each commit the milliseconds that its EndTxn took (all records were acknowledged before it).
"""

import json
import sys
import time

from confluent_kafka import Producer

RECORD_BYTES = 1000
WAIT_SECONDS = 60.0


class Transacting:
    """Keeps the time of each commit after `began`."""

    def __init__(self, address: str, topic: str, commit_ms: float) -> None:
        self.records = 0
        self.commits_ms: list[float] = []
        self._topic = topic
        self._commit_seconds = commit_ms / 1000
        self._value = b"x" * RECORD_BYTES
        self._producer = Producer(
            {"bootstrap.servers": address, "transactional.id": f"of-{topic}", "log_level": 0}
        )
        self._producer.init_transactions(WAIT_SECONDS)

    def run(self, seconds: float) -> float:
        """Commit transactions for this long; return the seconds until the last is committed."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            self._transaction()
        return time.monotonic() - began

    def _transaction(self) -> None:
        producer, topic, value = self._producer, self._topic, self._value
        producer.begin_transaction()
        until = time.monotonic() + self._commit_seconds
        records = 0
        while time.monotonic() < until:
            try:
                producer.produce(topic, value, partition=0)
            except BufferError:  # the queue is full
                producer.poll(0.001)
            else:
                records += 1
        producer.flush(WAIT_SECONDS)
        ended = time.monotonic()
        producer.commit_transaction(WAIT_SECONDS)  # raises if a record was not acknowledged
        self.commits_ms.append((time.monotonic() - ended) * 1000)
        self.records += records


def main() -> None:
    address, topic, commit_ms, warm_up_seconds, seconds = sys.argv[1:]
    load = Transacting(address, topic, float(commit_ms))
    load.run(float(warm_up_seconds))
    load.records, load.commits_ms = 0, []
    took = load.run(float(seconds))
    found = {"records": load.records, "seconds": took, "commits_ms": load.commits_ms}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
