"""A run of the pipeline `flights`, as it reports itself."""

from ottla.pipelines.progress.offset_metadata import Run

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
