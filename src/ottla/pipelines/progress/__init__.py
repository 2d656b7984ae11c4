"""What a pipeline keeps on the broker: its place and its Delta versions in a consumer group."""

from ottla.pipelines.progress.report import report_progress

__all__ = ["report_progress"]
