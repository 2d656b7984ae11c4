from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from bench.measure import KAFKA, OTTLA, Bench, Measure
from rich.console import Console

from bench import report


class Rate:
    name = "rate"
    runs = None
    settings = "ten records"
    measures: Sequence[Measure] = (Measure("produce", "MB/s", more_is_better=True, ratio=1.0),)

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        raise AssertionError("a report measures nothing")


def kept(ottla: float) -> dict[str, object]:
    entry = {"runs": 1, "load": "0.1 to 0.2", "date": "2026-11-21", "machine": {"java": "17"}}
    return {"rate": {**entry, "values": {OTTLA: {"produce": [ottla]}, KAFKA: {"produce": [200.0]}}}}


def test_a_missed_goal_adds_its_profile(tmp_path: Path) -> None:
    (tmp_path / "rate.txt").write_text("append 3.1 s\n")
    text = report.markdown([Rate()], kept(150.0), tmp_path)
    assert "| produce | MB/s | 150.0 | 200.0 | 0.75 | ≥ 1.0 × Kafka | **no** |" in text
    assert "append 3.1 s" in text
    assert "ten records" in text
    assert "- **rate**: java: 17" in text


def test_a_met_goal_adds_no_profile(tmp_path: Path) -> None:
    (tmp_path / "rate.txt").write_text("append 3.1 s\n")
    text = report.markdown([Rate()], kept(250.0), tmp_path)
    assert "| yes |" in text
    assert "append" not in text


def test_what_was_measured_with_other_versions_is_told_apart(tmp_path: Path) -> None:
    class Later(Rate):
        name = "later"

    both = kept(250.0)
    later = dict(both["rate"])  # type: ignore[call-overload]
    both["later"] = {**later, "date": "2026-11-27", "machine": {"java": "21"}}
    text = report.markdown([Rate(), Later()], both, tmp_path)
    assert text.endswith("- **later**: java: 21\n- **rate**: java: 17\n")


def test_the_printed_table_has_the_same_row() -> None:
    out = StringIO()
    report.show(Console(file=out, width=200), [Rate()], kept(150.0))
    assert "produce" in out.getvalue()
    assert "0.75" in out.getvalue()
