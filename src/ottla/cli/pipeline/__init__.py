"""Run pipelines into Delta: run, check, status, stop, rejects, maintain, package."""

FIRST = ("run", "check", "status", "stop", "rejects", "maintain", "package")
