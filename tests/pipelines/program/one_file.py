"""A pipeline file whose topic has one partition, and the lag there."""

from collections.abc import Mapping

from ottla.pipelines.progress.status import Lag

FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "numbers"
schema = "n INT"
[sink]
target = "./lake/numbers"
[delivery]
checkpoint = "./cp/numbers"
group = "numbers-delta"
"""


class Lags:
    """Answers with the lag at each offset of one partition that ends at offset 3."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    def read(self, offsets: Mapping[tuple[str, int], int]) -> Lag:
        return Lag(3 - offsets["numbers", 0], 0)
