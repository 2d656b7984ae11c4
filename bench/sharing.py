"""A member of a share group that accepts what it gets.

`python -m bench.sharing ADDRESS TOPIC GROUP`: prints "ready" once it is a member, and reads. For
each line on stdin it prints how many records it got so far, how many of them with its first poll
that got any, and when it got those and the last one, in seconds of the machine's clock. "times"
prints how long each record was under way, in ms, if its value begins with the time at which it was
sent.
"""

import struct
import sys
import threading
import time
from collections.abc import Sequence

from confluent_kafka import ShareConsumer

POLL_SECONDS = 0.2
SENT = struct.Struct(">d")


class Member:
    """It polls in a thread of its own."""

    def __init__(self, address: str, topic: str, group: str) -> None:
        self._consumer = ShareConsumer(
            {"bootstrap.servers": address, "group.id": group, "log_level": 0}
        )
        self._consumer.subscribe([topic])
        self.count = 0
        self.first_count = 0
        self.first_at = 0.0
        self.last_at = 0.0
        self.times_ms: list[float] = []

    def run(self) -> None:
        """To the end of the process. The next poll accepts what the one before brought."""
        while True:
            messages = self._consumer.poll(POLL_SECONDS)
            now = time.monotonic()
            for message in messages:
                if message.error() is None:
                    (sent,) = SENT.unpack_from(message.value())
                    self.times_ms.append((now - sent) * 1000)
                    self.count += 1
                    self.last_at = now
            if self.count and not self.first_count:
                self.first_count, self.first_at = self.count, now


def main(words: Sequence[str]) -> None:
    member = Member(*words)
    threading.Thread(target=member.run, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "times":
            print(" ".join(f"{each:.3f}" for each in member.times_ms), flush=True)
        else:
            told = (member.count, member.first_count, member.first_at, member.last_at)
            print(*told, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
