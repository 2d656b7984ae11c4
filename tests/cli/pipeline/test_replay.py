"""What a replay prints, and which files it refuses before Spark starts."""

from pathlib import Path

import pytest

from ottla.cli.app import carry_out
from ottla.cli.pipeline.replay import replay_of
from ottla.cli.rows import document
from ottla.pipelines.replay.outcome import Replayed, ReplayedReason

FOUND = Replayed(
    "/lake/n_rejected", 4, 2, 1, 1, 2, (ReplayedReason("r", 3, 2, 1),), (("s", 1),), finished=7
)
FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "numbers"
schema = "n INT"
[sink]
topic = "copies"
[delivery]
checkpoint = "./cp/numbers"
"""


def test_a_document_counts_by_former_and_new_reason() -> None:
    assert document(replay_of("n", "./n", FOUND, dry_run=True)) == {
        "pipeline": "n",
        "target": "./n",
        "table": "/lake/n_rejected",
        "dry_run": True,
        "rows": 4,
        "sent": 2,
        "rejected": 1,
        "not_found": 1,
        "written": 2,
        "finished": 7,
        "reasons": [{"rows": 3, "sent": 2, "rejected": 1, "reason": "r"}],
        "rejected_again": [{"rows": 1, "reason": "s"}],
    }


def test_a_person_reads_counts_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    replay_of("n", "./n", FOUND, dry_run=False).show()
    out, err = capsys.readouterr()
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "n: a replay that was cut off is complete: 7 rows in ./n.",
        "n: 4 rejected rows in /lake/n_rejected: 2 sent again, 1 rejected again",
        "rows sent rejected rejected before for",
        "3 2 1 r",
        "",
        "rows rejected again for",
        "1 s",
    ]
    assert err.startswith("n: 1 row without a record")


def test_nothing_to_send_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    replay_of("n", "./n", Replayed("t_rejected"), dry_run=False).show()
    assert capsys.readouterr().out == "n: no row is to be sent again (t_rejected).\n"


def test_a_file_without_rejected_rows_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    assert carry_out(["pipeline", "replay", str(file)]) == 1
    assert "No pipeline of numbers.toml writes a table." in capsys.readouterr().err
