"""What pipelines know of any target to write to, and what several sinks share."""
