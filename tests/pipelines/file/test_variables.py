"""`${NAME}` in a pipeline file."""

from ottla.pipelines.file.variables import replace_variables
from ottla.pipelines.spec.problem import Problem


def test_variables_are_replaced_everywhere_but_in_sql() -> None:
    problems: list[Problem] = []
    document = {
        "source": {"kafka": {"sasl.password": "${PASSWORD}"}, "servers": ["${HOST}:1", 7]},
        "transform": {"sql": "SELECT '${PASSWORD}'"},
        "price": "$5 and $${HOST}",
    }
    found = replace_variables(document, {"PASSWORD": "p$w", "HOST": "h"}, "", problems)
    assert found == {
        "source": {"kafka": {"sasl.password": "p$w"}, "servers": ["h:1", 7]},
        "transform": {"sql": "SELECT '${PASSWORD}'"},
        "price": "$5 and ${HOST}",
    }
    assert problems == []


def test_unset_variables_are_refused_with_their_field() -> None:
    problems: list[Problem] = []
    replace_variables({"a": ["x", "${NO_SUCH}"], "b": {"c": "${1x}"}}, {}, "", problems)
    assert list(map(str, problems)) == [
        "a[1]: the environment variable NO_SUCH is not set; type: export NO_SUCH=…",
        "b.c: ${1x} names no variable: letters, digits and '_'",
    ]
