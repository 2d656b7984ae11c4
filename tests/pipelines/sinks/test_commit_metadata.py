"""What each commit says about itself."""

from ottla.pipelines.sinks.commit_metadata import (
    CommitMetadata,
    latest_of_topics,
    read_metadata,
)


def commit(batch: int, **offsets: int) -> CommitMetadata:
    ids = {name: f"id-{name}" for name in offsets}
    return CommitMetadata("q", "id", batch, "c", ids, {n: {0: o} for n, o in offsets.items()})


def test_it_is_one_line_of_json_and_read_as_it_was_written() -> None:
    metadata = commit(7, flights=4711)
    assert metadata.text() == (
        '{"ottla.pipeline":1,"query":"q","id":"id","batch":7,"cluster":"c",'
        '"topics":{"flights":{"id":"id-flights","offsets":{"0":4711}}}}'
    )
    assert read_metadata(metadata.text()) == metadata


def test_what_others_write_is_passed_over() -> None:
    for text in ("", "a note", "[]", "{}", '{"ottla.pipeline":2}', '{"ottla.pipeline":1}'):
        assert read_metadata(text) is None


def test_the_newest_commit_of_each_topic_is_found() -> None:
    commits = [commit(9, a=90).text(), "a note", commit(8, a=80, b=8).text(), commit(7, b=7).text()]
    found = latest_of_topics(commits, ["a", "b", "c"])

    assert {name: metadata.batch for name, metadata in found.items()} == {"a": 9, "b": 8}
    assert found["b"].topic_ids["b"] == "id-b"
