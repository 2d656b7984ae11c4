"""A small document is read as it was written, or refused with what to do."""

import pytest

from ottla.pipelines.checkpoint.document import Document
from ottla.pipelines.errors import PipelineError

NUMBER = Document("n.json", lambda found: int(found["n"]), lambda n: {"n": n})


class Memory:
    location = "file:/cp"

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.files[name] = text

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


def test_it_is_read_as_it_was_written() -> None:
    folder = Memory()
    assert NUMBER.read(folder) is None

    NUMBER.write(folder, 7)

    assert folder.files == {"n.json": '{"version": 1, "n": 7}\n'}
    assert NUMBER.read(folder) == 7


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "{}", '{"version": 1}', '{"version": 1, "n": []}']
)
def test_what_is_damaged_says_where_it_is_and_what_to_do(text: str) -> None:
    folder = Memory()
    folder.files["n.json"] = text

    with pytest.raises(
        PipelineError, match=r"^file:/cp/n.json is damaged\. Restore it, or use a new checkpoint$"
    ):
        NUMBER.read(folder)


def test_another_version_is_not_read() -> None:
    with pytest.raises(PipelineError, match=r"another version of Ottla \(version 2, not 1\)"):
        NUMBER.value('{"version": 2, "n": 7}', "n.json")
