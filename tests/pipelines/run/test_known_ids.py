"""What the ids of a schema registry have meant to a checkpoint."""

from dataclasses import dataclass, field, replace

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.registry.framed import Branch, Framed
from ottla.pipelines.run import known_ids
from ottla.pipelines.run.known_ids import FILE, check_ids, note_ids
from ottla.pipelines.source.source import Source


@dataclass
class Memory:
    """A checkpoint's folder."""

    location: str = "file:/cp"
    files: dict[str, str] = field(default_factory=dict)

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.files[name] = text

    def delete(self, name: str) -> None:
        del self.files[name]


def source(**writers: str) -> Source:
    """A topic whose values have these schemas, by id."""
    branches = tuple(Branch(int(name[1:]), writer) for name, writer in writers.items())
    return Source("t", read_settings("b:9092"), {"value": Framed("avro", "{}", branches, "x")})


def test_an_id_that_means_another_schema_is_refused() -> None:
    folder = Memory()
    check_ids(folder, [source(_1="old")])
    note_ids(folder, [source(_1="old")])
    note_ids(folder, [source(_1="old", _2="new")])
    check_ids(folder, [source(_2="new", _3="newer")])
    before = dict(folder.files)
    for act in (check_ids, note_ids):
        with pytest.raises(PipelineError, match="has another schema under the id 2 than") as told:
            act(folder, [source(_1="old", _2="of another subject")])
        assert "last read the value of topic 't': it was reset" in str(told.value)
        assert f"delete {FILE} in /cp" in str(told.value)
    assert folder.files == before


def test_nothing_is_kept_of_topics_without_a_registry_or_of_json() -> None:
    folder = Memory()
    note_ids(folder, [source(_1=""), replace(source(_1="a"), schemas={})])
    assert folder.files == {}
    note_ids(folder, [source(_1="a", _2="")])
    check_ids(folder, [source(_1="a", _2="b")])


def test_the_greatest_ids_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_ids, "MAX_IDS", 2)
    folder = Memory()
    note_ids(folder, [source(_1="a", _2="b", _3="c")])
    check_ids(folder, [source(_1="x")])
    with pytest.raises(PipelineError, match="under the id 3"):
        check_ids(folder, [source(_3="x")])
