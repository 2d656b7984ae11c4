"""A consumer that commits one offset after the other and waits for each response.

`python -m bench.committing ADDRESS TOPIC GROUP COUNT`: prints "ready" after a first successful
commit, waits for a line on stdin, commits COUNT times and prints the seconds that this took.
"""

import sys
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

FIRST_COMMIT_SECONDS = 60.0
RETRY_SECONDS = 0.1


def main() -> None:
    address, topic, group, count = sys.argv[1:]
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False}
    )

    def commit(offset: int) -> None:
        offsets = [TopicPartition(topic, 0, offset)]
        (answer,) = consumer.commit(offsets=offsets, asynchronous=False)
        if answer.error is not None:
            raise SystemExit(f"commit of offset {offset} failed: {answer.error}")

    limit = time.monotonic() + FIRST_COMMIT_SECONDS
    while True:
        try:
            commit(0)
            break
        except KafkaException:  # the group's coordinator may not have loaded yet
            if time.monotonic() > limit:
                raise
            time.sleep(RETRY_SECONDS)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    for offset in range(1, int(count) + 1):
        commit(offset)
    print(time.monotonic() - began, flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
