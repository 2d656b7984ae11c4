"""Which schema of a registry a pipeline asks for."""

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.registered import Wanted, is_wanted, read_wanted
from ottla.registry.registered import Registered


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("registry", Wanted("flights-value")),
        ("registry:com.example.Flight", Wanted("com.example.Flight")),
        ("registry@3", Wanted("flights-value", 3)),
        ("registry:f@12", Wanted("f", 12)),
        ("registry#air.Flight", Wanted("flights-value", 0, "air.Flight")),
        ("registry:f@12#Flight", Wanted("f", 12, "Flight")),
    ],
)
def test_words_name_a_subject(word: str, wanted: Wanted) -> None:
    assert is_wanted(word)
    assert read_wanted(word, "flights", "value") == wanted


@pytest.mark.parametrize(
    "word", ["registry@0", "registry:", "registry flights", "registry@latest", "registry#"]
)
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(
        PipelineError, match="write 'registry' for the latest schema of flights-key"
    ):
        read_wanted(word, "flights", "key")


def test_ddl_is_no_word() -> None:
    assert not is_wanted("registry_id BIGINT")
    assert not is_wanted(None)


def test_a_schema_is_named_by_its_version_or_its_id() -> None:
    assert Registered(7, "AVRO", "", "f-value", 2).shown == "version 2 of f-value (schema 7)"
    assert Registered(7, "AVRO", "").shown == "schema 7"
