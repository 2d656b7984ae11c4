"""The plan by which framed data is read."""

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.framed import MAX_MISSING, Branch, Framed, branches_of, read_framed
from ottla.pipelines.registry.registered import Fetched
from ottla.registry.registered import Registered

OLD = Registered(3, "AVRO", "old", "f-value", 1)
NEW = Registered(9, "AVRO", "new", "f-value", 2)


def test_the_schema_to_read_by_comes_first_and_each_id_once() -> None:
    found = branches_of(Fetched(NEW, (OLD, NEW, OLD)), lambda one: one.text, lambda _: None)

    assert found == (Branch(9, "new"), Branch(3, "old"))


def test_a_conflict_is_a_sentence() -> None:
    found = branches_of(Fetched(NEW, (OLD,)), lambda one: one.text, lambda _: "a is missing")

    assert found[1].refused == (
        "version 2 of f-value (schema 9) cannot read data of version 1 of f-value (schema 3): "
        "a is missing"
    )


def test_another_format_is_a_conflict() -> None:
    other = Registered(4, "JSON", "{}")
    found = branches_of(Fetched(NEW, (other,)), lambda one: one.text, lambda _: None)

    assert found[1].refused.endswith("data of schema 4: it is JSON, not AVRO")


def test_ids_that_the_registry_lacks_have_a_limit() -> None:
    missing = frozenset(range(100, 101 + MAX_MISSING))
    with pytest.raises(PipelineError, match="the data is not framed, or comes from another"):
        branches_of(Fetched(NEW, (), missing), lambda one: one.text, lambda _: None)


def test_the_plan_is_kept_as_json() -> None:
    framed = Framed("AVRO", '"string"', (Branch(1, "w"), Branch(2, "", "no")), "r", (7,))

    assert read_framed(framed.jsonValue()) == framed
    assert read_framed("string") is None
    assert read_framed({"type": "struct", "fields": []}) is None
    assert not framed.is_object
    assert Framed("JSON", '{"type": "struct", "fields": []}', ()).is_object
