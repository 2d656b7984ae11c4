"""The steps of the model, drawn from seeds, against real Spark, Delta, PostgreSQL and topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.model.real import SINKS, RealWorld, walk

from bench import fixture

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]
postgres = fixture.postgres

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", SINKS)
def test_each_record_is_there_once_or_a_run_says_why_not(
    kind: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def asked(name: str) -> Any:
        return request.getfixturevalue(name)

    database = asked("postgres") if kind == "postgresql" else None
    walk(RealWorld(kind, asked("spark"), asked("bootstrap"), tmp_path, database), seed)
