"""Produce with lz4 and zstd: the broker decompresses every batch and checks its records."""

from bench import rdkafka
from bench.brokers import running
from bench.figures.start import first_produce
from bench.measure import Bench, Measure

CODECS = ("lz4", "zstd")
SIZES = (("100 B", 100, 6_000_000), ("1 KB", 1000, 1_500_000))
WARM_UP_SHARE = 10
GB = 1_000_000_000


class CompressedProduce:
    """One partition and one producer for each codec and record size; MB/s uncompressed."""

    name = "compressed-produce"
    runs = None
    settings = (
        "rdkafka_performance -z: "
        + " and ".join(f"{count:,} records of {label}" for label, _, count in SIZES)
        + f" with each of {', '.join(CODECS)} to one partition, acks=all,"
        f" {' '.join(rdkafka.DEFAULTS)}; the tool's records are all alike, so a batch compresses"
        " to almost nothing; before each a tenth of it to another topic"
    )
    measures = tuple(
        measure
        for codec in CODECS
        for label, _, _ in SIZES
        for measure in (
            Measure(f"produce {codec} {label}", "MB/s", more_is_better=True, ratio=1.0),
            Measure(f"broker CPU, produce {codec} {label}", "s/GB", more_is_better=False),
        )
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        tool = bench.rdkafka_performance
        values: list[float] = []
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            for codec in CODECS:
                for _, size, full in SIZES:
                    count, topic = bench.amount(full), f"{codec}-{size}"
                    for name in (f"{topic}-warm", topic):
                        first_produce(broker.address, name, 0)
                    warm = max(count // WARM_UP_SHARE, 1)
                    rdkafka.produce(tool, broker.address, f"{topic}-warm", warm, size, codec=codec)
                    before = broker.child.cpu_seconds()
                    rate, _ = rdkafka.produce(tool, broker.address, topic, count, size, codec=codec)
                    cpu_seconds = broker.child.cpu_seconds() - before
                    values += (rate, cpu_seconds / (count * size / GB))
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
