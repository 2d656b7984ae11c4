"""How the pipeline `flights` stands after its seventh batch."""

from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.state import Run
from ottla.pipelines.progress.status import Lag

RUN = Run(
    id="9f2c41d0",
    state="running",
    host="etl-3",
    pid=4711,
    since_ms=1_000,
    seen_ms=60_000,
    every_s=10,
    batch_at_ms=59_000,
    batch_ms=410,
    rows=12_000,
    rows_per_s=29_268.3,
    rejected=3,
)
LATEST = Delivered("flights", "id-1", 7, {"flights": {0: 12_000}}, "/lake/flights", 9)
SNAPSHOT = Snapshot("flights", RUN, LATEST, Lag(1_200, 2_300))
