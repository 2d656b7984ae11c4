"""Reads the outcomes of a suite that runs with pytest."""

from pathlib import Path
from xml.etree import ElementTree

from conformance.outcome import Outcome, State

MAX_OF_A_REASON = 200


def outcomes_of(report: Path, suite: str) -> list[Outcome]:
    """Each test in pytest's XML report."""
    outcomes = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        state: State = "passed"
        reason = ""
        for child in case:
            if child.tag in ("failure", "error"):
                state = "failed"
            elif child.tag == "skipped":
                state = "skipped"
            else:
                continue
            lines = (child.get("message") or "").splitlines()
            reason = lines[0][:MAX_OF_A_REASON] if lines else ""
        name = case.get("name", "?")
        outcomes.append(Outcome(suite, name, state, float(case.get("time", 0)), reason))
    return outcomes
