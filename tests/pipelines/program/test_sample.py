"""Which newest records stop a run before Spark starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.progress.runs import RUN

from ottla.pipelines.errors import MostlyRejectedError
from ottla.pipelines.file.read import read_text
from ottla.pipelines.kafka.brokers import ClusterState, TopicState
from ottla.pipelines.program import sample
from ottla.pipelines.program.sample import check_newest, format_sample
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.offset_metadata import OffsetMetadata
from ottla.pipelines.progress.status import Status
from ottla.pipelines.rejects import first_batch
from ottla.pipelines.source.judge import Sample
from ottla.pipelines.source.newest import MAX_RECORDS
from ottla.pipelines.spec.pipeline import PipelineSpec

TEXT = """
[source]
bootstrap_servers = "localhost:9092"
topic = "t"
schema = "n INT"
[sink]
target = "./lake/t"
[delivery]
checkpoint = "./cp"
"""
CLUSTER = ClusterState("c", {"t": TopicState("t", "id", {0: 0}, {0: 5_000})})
REASON = "value is not a JSON object of the schema"
STARTED = OffsetMetadata("t", "id", run=RUN)


def sampled(records: int, rejected: int) -> Sample:
    reasons = ((REASON, rejected),) if rejected else ()
    return Sample(records, records - rejected, 0, reasons)


class Topic:
    """Samples of a topic by their size, and what its group knows."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.samples: dict[int, Sample | str] = {}
        self.metadata: OffsetMetadata | None = None
        self.group_fails = False
        self.unknown_fields = ""
        monkeypatch.setattr(sample, "parse_newest", self.parse_newest)
        monkeypatch.setattr(sample, "read_status", self.read_status)

    def parse_newest(
        self,
        _kafka: Any,
        _state: Any,
        _schema: Any,
        _key: Any,
        unknown: str,
        limit: int,
        *,
        source_format: str,
    ) -> Sample | str:
        assert source_format == "plain"
        self.unknown_fields = unknown
        return self.samples[limit]

    def read_status(self, _settings: Any, group: str, *, with_lag: bool) -> Status:
        assert not with_lag
        if self.group_fails:
            raise GroupError("not authorized")
        return Status(group, {}, self.metadata, None)

    def rejects(self, of_few: int, of_many: int) -> None:
        """Set how many of the newest are rejected, and how many of the first batch's."""
        self.samples[MAX_RECORDS] = sampled(100, of_few)
        self.samples[first_batch.MAX_RECORDS] = sampled(1_000, of_many)

    def check(self, source: str = "", delivery: str = "") -> str | None:
        text = TEXT.replace("[sink]", f"{source}\n[sink]") + delivery
        spec: PipelineSpec = read_text(self.folder / "t.toml", text, {}).pipelines[0]
        return check_newest(spec, CLUSTER)


@pytest.fixture
def topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(tmp_path, monkeypatch)


def test_records_that_parse_are_not_mentioned(topic: Topic) -> None:
    topic.rejects(0, 0)
    assert topic.check() is None
    topic.samples[MAX_RECORDS] = "the schema is in a registry"
    assert topic.check() is None


def test_unknown_fields_are_mentioned(topic: Topic) -> None:
    topic.samples[MAX_RECORDS] = Sample(100, 100, 0, (), 7, ("delay_min", "n.y"))
    assert topic.check() == (
        "the newest 100 records fit the schema; 7 have fields that the schema lacks: delay_min, n.y"
    )
    assert topic.unknown_fields == "drop"
    topic.check('unknown_fields = "reject"')
    assert topic.unknown_fields == "reject"


@pytest.mark.parametrize("metadata", [None, STARTED])
def test_a_new_query_of_which_most_is_rejected_stops(
    topic: Topic, metadata: OffsetMetadata | None
) -> None:
    topic.rejects(51, 501)
    topic.metadata = metadata
    with pytest.raises(MostlyRejectedError) as stopped:
        topic.check()
    assert str(stopped.value).startswith(
        f"501 of the newest 1,000 records do not fit the schema: {REASON}. Spark was not started"
    )
    assert "write on_rejects = 'continue'" in str(stopped.value)


@pytest.mark.parametrize(("of_few", "of_many"), [(50, 1_000), (100, 500)])
def test_half_of_the_records_and_what_the_first_batch_would_not_stop_at_are_a_warning(
    topic: Topic, of_few: int, of_many: int
) -> None:
    topic.rejects(of_few, of_many)
    some = (
        "none of the newest 100 records fits"
        if of_few == 100
        else "50 of the newest 100 records do not fit"
    )
    assert topic.check() == f"{some} the schema: {REASON}"


@pytest.mark.parametrize(
    ("source", "delivery"),
    [
        ("", 'on_rejects = "continue"'),
        ('rejects = "keep"', ""),
        ('starting = "latest"', ""),
        ("starting = { 0 = 7 }", ""),
        ("max_rows = 1_000", ""),
    ],
)
def test_where_the_first_batch_does_not_stop_it_is_a_warning(
    topic: Topic, source: str, delivery: str
) -> None:
    topic.rejects(100, 1_000)
    line = topic.check(source, delivery)
    assert line == f"none of the newest 100 records fits the schema: {REASON}"


def test_a_query_that_has_begun_is_warned(topic: Topic) -> None:
    topic.rejects(100, 1_000)
    topic.metadata = replace(STARTED, batch=0)
    assert topic.check() is not None, "its group knows a batch"
    topic.metadata, topic.group_fails = None, True
    assert topic.check() is not None, "nobody knows"
    topic.group_fails = False
    (topic.folder / "cp" / "offsets").mkdir(parents=True)
    (topic.folder / "cp" / "offsets" / "0").touch()
    assert topic.check() is not None, "its checkpoint has a batch"


def test_a_checkpoint_elsewhere_is_not_known_without_spark(topic: Topic) -> None:
    topic.rejects(100, 1_000)
    text = TEXT.replace("./cp", "s3a://lake/cp")
    (spec,) = read_text(topic.folder / "t.toml", text, {}).pipelines
    assert check_newest(spec, CLUSTER) is not None


OTHER = "value is not UTF-8 text"


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (Sample(0, 0, 0, ()), "there is no record to check"),
        (Sample(1, 1, 0, ()), "the newest record fits the schema"),
        (Sample(34, 34, 0, ()), "the newest 34 records fit the schema"),
        (
            Sample(34, 31, 3, ()),
            "31 of the newest 34 records fit the schema (3 can only be checked by Spark)",
        ),
        (Sample(1, 0, 0, ((REASON, 1),)), f"the newest record does not fit the schema: {REASON}"),
        (
            Sample(34, 31, 2, ((REASON, 1),)),
            "1 of the newest 34 records does not fit the schema (2 can only be checked by Spark): "
            f"{REASON}",
        ),
        (
            Sample(34, 31, 0, ((REASON, 2), (OTHER, 1))),
            "3 of the newest 34 records do not fit the schema, 2 of them for this reason: "
            f"{REASON}",
        ),
        (
            "the schema is in a registry",
            "the newest records were not checked: the schema is in a registry",
        ),
    ],
)
def test_what_became_of_the_newest_records_in_plain_words(sample: Sample | str, said: str) -> None:
    assert format_sample(sample) == said
