"""Run pipelines into Delta: run, check, status, stop, rejects, replay, maintain, package."""

FIRST = ("run", "check", "status", "stop", "rejects", "replay", "maintain", "package")
