"""What a pipeline keeps on the broker: its offsets, its Delta versions and its run's state."""

from ottla.pipelines.progress.report import report_progress, report_query

__all__ = ["report_progress", "report_query"]
