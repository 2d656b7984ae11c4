"""What pipelines know of any place to write to, and what several sinks share."""
