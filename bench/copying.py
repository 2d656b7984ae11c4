"""A consume-transform-produce loop that commits its offsets in its transactions (KIP-447).

`python -m bench.copying ADDRESS SOURCE TARGET COUNT RECORDS`: copies COUNT records of partition 0
of SOURCE, and RECORDS in a transaction. Prints one line of JSON: the records copied, the seconds
from the second transaction on, and the milliseconds of each transaction.
"""

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

WAIT_SECONDS = 60.0


class Copying:
    """One instance: a consumer of its own group, and a producer."""

    def __init__(self, address: str, source: str, target: str) -> None:
        self._target = target
        common = {"bootstrap.servers": address, "log_level": 0}
        self._producer = Producer({**common, "transactional.id": f"from-{source}"})
        self._producer.init_transactions(WAIT_SECONDS)
        self._consumer = Consumer(
            {
                **common,
                "group.id": f"copies-{source}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([source])

    def transaction(self, records: int) -> int:
        """Copy up to this many records in one transaction; return how many."""
        messages: list[Any] = []
        limit = time.monotonic() + WAIT_SECONDS
        while len(messages) < records and time.monotonic() < limit:
            messages += self._consumer.consume(records - len(messages), 0.1)
        for message in messages:
            if message.error() is not None:
                raise SystemExit(f"the consumer failed: {message.error()}")
        if not messages:
            raise SystemExit(f"no record within {WAIT_SECONDS:.0f} s")
        producer = self._producer
        producer.begin_transaction()
        for message in messages:
            producer.produce(self._target, message.value(), message.key())
        last = messages[-1]
        producer.send_offsets_to_transaction(
            [TopicPartition(last.topic(), last.partition(), last.offset() + 1)],
            self._consumer.consumer_group_metadata(),
            WAIT_SECONDS,
        )
        producer.commit_transaction(WAIT_SECONDS)
        return len(messages)

    def close(self) -> None:
        self._consumer.close()


def main() -> None:
    address, source, target, count, records = sys.argv[1:]
    copying = Copying(address, source, target)
    # The first transaction waits for the group to form.
    left = int(count) - copying.transaction(int(records))
    copied, took_ms = 0, []
    began = time.monotonic()
    while copied < left:
        started = time.monotonic()
        copied += copying.transaction(min(int(records), left - copied))
        took_ms.append((time.monotonic() - started) * 1000)
    seconds = time.monotonic() - began
    copying.close()
    print(json.dumps({"records": copied, "seconds": seconds, "took_ms": took_ms}), flush=True)


if __name__ == "__main__":
    main()
