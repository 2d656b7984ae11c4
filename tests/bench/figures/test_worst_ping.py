from bench.brokers import running
from bench.figures.worst_ping import (
    compact,
    create,
    gzipped,
    list_topics,
    log_bytes,
    produce,
    write_with_keys,
)

from ottla.records.compression import Compression
from ottla.records.header import read_header


def test_the_batch_is_compressed_by_half() -> None:
    batch = gzipped(1_000)
    assert read_header(batch).compression == Compression.gzip
    assert 500_000 < len(batch) < 650_000


def test_the_loads_do_what_they_say() -> None:
    with running("Ottla", None, {"log.cleaner.backoff.ms": "100"}) as broker:
        create(broker, ["one", "two"], {"max.message.bytes": "2000000"})
        assert list_topics(broker) == 2
        produce(broker, "one", gzipped(1_000))
        write_with_keys(broker, 300_000, 100)
        before = log_bytes(broker, "compacted")
        compact(broker)
        assert log_bytes(broker, "compacted") < before // 3
