"""New connections with TLS and SCRAM, and the memory of a thousand that stay."""

from bench.brokers import settle
from bench.connecting import CLOSE, KEEP, Connecting
from bench.measure import Bench, Measure
from bench.secured import MECHANISM, SASL_SSL, TLS, running

OPENED = 2000
KEPT = 1000
PROCESSES = 2
WARM_UP_SHARE = 4
MB = 1_000_000


class SecuredConnections:
    """Clients that connect, authenticate, ask for the versions and go."""

    name = "secured-connections"
    runs = None
    settings = (
        f"{SASL_SSL}, {TLS} without resumption, {MECHANISM} of 4,096 iterations, a certificate of"
        f" P-256; {PROCESSES} processes of Python, {OPENED:,} connections one after the other, each"
        f" with one request; before it a quarter of it to warm up. Memory: VmRSS with {KEPT:,}"
        " connections that stay open, less that before them"
    )
    measures = (
        Measure("new connections over TLS and SCRAM", "connections/s", True, ratio=1.0),
        Measure("broker CPU, new connection", "ms/connection", False),
        Measure("memory of 1,000 TLS connections", "MB", False, ratio=0.5),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count, kept = bench.amount(OPENED), bench.amount(KEPT)
        with running(contestant, bench) as secured, Connecting(secured, PROCESSES) as clients:
            child = secured.broker.child
            clients.connect(count // WARM_UP_SHARE, CLOSE)
            before = child.cpu_seconds()
            seconds = clients.connect(count, CLOSE)
            cpu_ms = (child.cpu_seconds() - before) * 1000 / count
            settle(secured.broker, 2)
            resting = child.rss_bytes()
            clients.connect(kept, KEEP)
            settle(secured.broker, 2)
            grown = (child.rss_bytes() - resting) / MB
        values = (count / seconds, cpu_ms, grown)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))
