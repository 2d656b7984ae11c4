"""A process that runs query after query lets the ended ones go."""

from typing import Any, cast

from ottla.pipelines import running
from ottla.pipelines.running import MAX_ENDED, QUERIES


def test_a_query_that_has_ended_is_let_go_after_others() -> None:
    known = dict(QUERIES)
    queries = [cast(Any, object()) for _ in range(2 * MAX_ENDED)]
    runs = cast(Any, object())
    running.started("test-runs", runs)
    try:
        for number, query in enumerate(queries):
            running.started(f"test-{number}", query)
            running.ended(query)

        kept = {name for name in QUERIES if name.startswith("test-")}
        assert kept == {"test-runs", *(f"test-{n}" for n in range(MAX_ENDED, 2 * MAX_ENDED))}

        running.started(f"test-{MAX_ENDED}", runs)  # it runs again
        for number in range(MAX_ENDED):
            running.started(f"test-new-{number}", queries[number])
            running.ended(queries[number])
        assert f"test-{MAX_ENDED}" in QUERIES
        assert f"test-{MAX_ENDED + 1}" not in QUERIES
    finally:
        running.ended(runs)
        for name in set(QUERIES) - set(known):
            del QUERIES[name]
