"""How the pipeline `flights` stands after its seventh batch."""

from tests.pipelines.progress.runs import RUN

from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.status import Lag

LATEST = Delivered("flights", "id-1", 7, {"flights": {0: 12_000}}, "/lake/flights", 9)
SNAPSHOT = Snapshot("flights", RUN, LATEST, Lag(1_200, 2_300))
