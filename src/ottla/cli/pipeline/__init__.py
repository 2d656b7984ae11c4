"""Run pipelines: run, check, status, stop, rejects, replay, maintain, package."""

FIRST = ("run", "check", "status", "stop", "rejects", "replay", "maintain", "package")
