"""Strict fields of a pipeline file."""

import pytest

from ottla.pipelines.spec.fields import Fields, nearest
from ottla.pipelines.spec.problem import Problem


def read(table: dict[str, object]) -> tuple[Fields, list[Problem]]:
    problems: list[Problem] = []
    return Fields(table, "source", problems), problems


def test_right_fields_have_their_values() -> None:
    fields, problems = read(
        {
            "topic": "flights",
            "rejects": "keep",
            "max_rows": 7,
            "history": True,
            "jars": ["a.jar", "b.jar"],
            "one": "c.jar",
            "kafka": {"security": {"protocol": "SSL"}, "retries": 3, "tls": True},
        }
    )
    assert fields.text("topic") == "flights"
    assert fields.choice("rejects", ("separate", "keep"), "separate") == "keep"
    assert fields.count("max_rows", at_least=1) == 7
    assert (fields.flag("history"), fields.flag("absent")) == (True, False)
    assert fields.texts("jars", "x.jar") == ("a.jar", "b.jar")
    assert fields.texts("one", "x.jar") == ("c.jar",)
    assert fields.settings("kafka") == (
        ("security.protocol", "SSL"),
        ("retries", "3"),
        ("tls", "true"),
    )
    assert fields.text("absent") is None
    fields.end()
    assert problems == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"topic": 7}, "source.topic: 7 is a whole number; allowed: text"),
        ({"topic": " "}, "source.topic: is empty"),
        ({"max_rows": "7"}, "source.max_rows: '7' is text; allowed: a whole number from 1"),
        ({"max_rows": True}, "source.max_rows: True is true or false; allowed: a whole number"),
        ({"history": 1}, "source.history: 1 is a whole number; allowed: true or false"),
        ({"max_rows": 0}, "source.max_rows: 0 is too small"),
        ({"rejects": "keeep"}, "'keeep' is not allowed; allowed: 'separate', 'keep'; did you mean"),
        ({"rejects": 7}, "7 is not allowed; allowed: 'separate', 'keep'"),
        ({"jars": [1]}, "source.jars: [1] is a list; allowed: a list of texts"),
        ({"kafka": "x"}, "source.kafka: 'x' is text; allowed: a table of settings"),
        ({"kafka": {"a": {"b": [1]}}}, "source.kafka.a.b: [1] is a list"),
    ],
)
def test_wrong_types_say_what_is_allowed(table: dict[str, object], said: str) -> None:
    fields, problems = read(table)
    fields.text("topic")
    fields.choice("rejects", ("separate", "keep"), "separate")
    fields.count("max_rows", at_least=1)
    fields.flag("history")
    fields.texts("jars", "x.jar")
    fields.settings("kafka")
    fields.end()
    assert len(problems) == 1
    assert said in str(problems[0])


def test_unknown_fields_name_the_nearest_or_where_they_belong() -> None:
    fields, problems = read({"toipc": "a", "checkpoint": "b", "zzz": 1})
    fields.text("topic", "flights", required=True)
    fields.end({"checkpoint": "[delivery]"})
    assert list(map(str, problems)) == [
        "source.topic: is missing, such as 'flights'",
        "source.toipc: there is no such field; did you mean 'topic'?",
        "source.checkpoint: there is no such field; it belongs in [delivery]",
        "source.zzz: there is no such field; known: topic",
    ]


def test_tables_below() -> None:
    fields, problems = read({"kafka": 7})
    assert fields.table("kafka").names() == []
    assert fields.table("sink", required=True).path_of("target") == "source.sink.target"
    assert [problem.where for problem in problems] == ["source.kafka", "source.sink"]


def test_the_nearest_word() -> None:
    assert nearest("Bootstrap-Servers", ["bootstrap_servers", "topic"]) == "bootstrap_servers"
    assert nearest("zzz", ["topic"]) is None
