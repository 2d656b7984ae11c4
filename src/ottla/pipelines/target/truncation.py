"""Records that say that the table was truncated at its source: what is older than them goes.

A truncation has no key. It has a place in the order of the records, and all of a table that lies
before it goes, whatever its key; of a table whose keys have the topic, all of its own topic
(`KeyedTable.own_topic`). Without `order_by` that is all that was read before it; for that the topic
must have one partition (`run.truncations`). With `order_by` older records of other partitions may
be read after it: they must not come back, so the last truncations are noted.

`<checkpoint>/ottla-truncated.json`, one JSON object, replaced as a whole:

    {"version": 1, "id": "<query id>", "batch": n, "topics": {"<topic>": "<topic id>"},
     "columns": ["<column>"], "places": {"<topic>": "{\\"<column>\\": <value>}"}, "before": {}}

`places` has the last truncation of each topic, by the topic's name where the keys have it, else one
by the name "". An order is JSON within JSON, in Spark's own words: a decimal has more digits than
Python's floats keep. `before` has what was noted before batch n of that query.

It is written before the batch that has the truncation. So it is true of a batch that the target
has; of one that it does not have, `before` is: the batch may be read again by another condition. A
batch that is cut off in between is read again, and noting it twice is noting it once. A place whose
topic was created again since is no place in that topic. A crash leaves the former text or the new
one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.document import Document, Folder
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted, text
from ottla.pipelines.spark.json_texts import whole_times
from ottla.pipelines.target.keyed_table import TRUNCATION, KeyedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

WHOLE: Final = ""
"""Whose place it is where a truncation takes the rows of the whole table."""
_TOPIC: Final = "ottla_topic"


@dataclass(frozen=True, slots=True)
class Truncation:
    """The places of truncations in the order of a table's records.

    `columns`: those of the order, each with its type. `places`: by topic, or WHOLE, their values as
    a JSON object. `is_of_topic`: whether they are by topic.
    """

    columns: tuple[tuple[str, str], ...]
    places: Mapping[str, str]
    is_of_topic: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def sql(self) -> str:
        """The place as SQL, which compares with `order_of` a row; by topic a map of them."""
        if not self.is_of_topic:
            return self._place(self.places[WHOLE])
        pairs = (f"{text(topic)}, {self._place(order)}" for topic, order in self.places.items())
        return f"map({', '.join(pairs)})"

    @property
    def orders(self) -> str:
        """The places as a JSON array."""
        return f"[{', '.join(self.places.values())}]"

    def of(self, topic: str) -> str:
        """Return the place of one topic as SQL."""
        return self._place(self.places[topic])

    def _place(self, order: str) -> str:
        fields = ", ".join(f"{quoted(name)}: {kind}" for name, kind in self.columns)
        return f"from_json({text(order)}, {text(f'struct<{fields}>')}, {whole_times()})"


@dataclass(frozen=True, slots=True)
class Noted:
    """What a checkpoint notes: `places` once the target has the batch, `before` until then."""

    id: str
    batch: int
    topics: Mapping[str, str]
    columns: tuple[str, ...]
    places: Mapping[str, str]
    before: Mapping[str, str]

    def of_topics(self, topics: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
        """Return those places whose topics are still the same, by their ids of now. Pure."""
        names = {*topics, *self.topics}
        changed = {name for name in names if topics.get(name) != self.topics.get(name)}
        if not changed:
            return dict(places)
        return {name: order for name, order in places.items() if name in {*topics} - changed}


def _parse(document: dict[str, Any]) -> Noted:
    names = tuple(map(str, document["columns"]))
    first, *_ = names
    found = [
        {str(topic): order for topic, order in document[which].items()}
        for which in ("places", "before")
    ]
    for order in (order for places in found for order in places.values()):
        if first not in dict(json.loads(order)):
            raise ValueError(f"without {first} the place is before all records")
    topics = {str(name): str(topic_id) for name, topic_id in document["topics"].items()}
    return Noted(str(document["id"]), int(document["batch"]), topics, names, *found)


NOTE: Final = Document(
    "ottla-truncated.json",
    _parse,
    asdict,
    instead="delete it: records that are older than the last truncation, and come later, are then "
    "kept",
)
"""The last truncations, and the batch that has the last of them."""


def order_of(keyed: KeyedTable, row: str = "") -> str:
    """Return the place of a row in the order of the records, as SQL. `row`: its alias."""
    alias = f"{row}." if row else ""
    names = ", ".join(f"{alias}{quoted(name)}" for name in keyed.order)
    return f"struct({names})"


def place_for(keyed: KeyedTable, place: str, row: str = "") -> str:
    """Return the place of the truncation that a row is held against, as SQL; null for none.

    `place`: as `Truncation.sql` gives it. `row`: the alias of the row.
    """
    if keyed.own_topic is None:
        return place
    alias = f"{row}." if row else ""
    return f"try_element_at({place}, {alias}{quoted(keyed.own_topic)})"


def read_truncations(
    rows: DataFrame, keyed: KeyedTable, noted: Truncation | None
) -> tuple[Truncation | None, int]:
    """Return the last truncation of each topic in a batch, None without any, and how many of its
    records an earlier one leaves out. It reads all rows.

    Raises PipelineError where a place cannot be kept as JSON.
    """
    topic = text(WHOLE) if keyed.own_topic is None else quoted(keyed.own_topic)
    older = "false" if noted is None else f"NOT {_is_truncation()} AND NOT {_stays(keyed, noted)}"
    last = rows.groupBy(_expression(f"{topic} AS {_TOPIC}")).agg(
        _expression(f"max({order_of(keyed)}) FILTER (WHERE {TRUNCATION}) AS place"),
        _expression(f"count_if({older}) AS older"),
    )
    found = last.selectExpr(_TOPIC, f"to_json(place, {whole_times()}) AS order", "older").collect()
    places = {row[_TOPIC]: row["order"] for row in found if row["order"] is not None}
    number = sum(row["older"] for row in found)
    if not places:
        return None, number
    truncation = placed(rows.schema, keyed, places)
    assert truncation is not None, "there are places"
    for name in places:
        order = truncation.of(name)
        kept = last.where(f"{_TOPIC} = {text(name)}").selectExpr(f"{order} <=> place AS is_same")
        row = kept.first()
        if row is None or not row["is_same"]:
            raise PipelineError(
                f"The place of a truncation, {places[name]}, is not the same when it is read "
                "again: choose another column in order_by, such as a number"
            )
    return truncation, number


def _expression(sql: str) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    return F.expr(sql)


def placed(rows: StructType, keyed: KeyedTable, places: Mapping[str, str]) -> Truncation | None:
    """Return the truncations at these places, by the columns of now; None without any."""
    if not places:
        return None
    types = {one.name: one.dataType.simpleString() for one in rows.fields}
    columns = tuple((name, types[name]) for name in keyed.order)
    return Truncation(columns, dict(sorted(places.items())), keyed.own_topic is not None)


def noted(folder: Folder, keyed: KeyedTable) -> Noted | None:
    """Return what a checkpoint notes of truncations, None where it notes nothing.

    Raises PipelineError where the note is damaged, or has places by other columns.
    """
    found = NOTE.read(folder)
    if found is not None and found.columns != keyed.order:
        raise PipelineError(
            f"The last truncation is noted by {', '.join(found.columns)}, and the records are now "
            f"ordered by {', '.join(keyed.order)}: which of them are older is not known. Order "
            f"them as before, or delete {folder.location}/{NOTE.name}: older records that come "
            "later are then kept"
        )
    return found


def later(spark: SparkSession, one: Truncation, other: Truncation | None) -> Truncation:
    """Return of each topic the later of two truncations by the same columns."""
    if other is None:
        return one
    places = {**other.places, **one.places}
    for topic in {*one.places} & {*other.places}:
        row = spark.range(1).selectExpr(f"{one.of(topic)} >= {other.of(topic)} AS is_later").first()
        if row is None or not row["is_later"]:
            places[topic] = other.places[topic]
    return Truncation(one.columns, dict(sorted(places.items())), one.is_of_topic)


def after(rows: DataFrame, keyed: KeyedTable, truncation: Truncation | None) -> DataFrame:
    """Return of the rows of a batch the records that truncations leave."""
    kept = rows.where(f"NOT {_is_truncation()}")
    if truncation is not None:
        kept = kept.where(_stays(keyed, truncation))
    return kept.drop(TRUNCATION)


def _is_truncation() -> str:
    return f"coalesce({TRUNCATION}, false)"


def _stays(keyed: KeyedTable, truncation: Truncation) -> str:
    """Return the condition that a record of a batch is later than a truncation."""
    place = place_for(keyed, truncation.sql)
    later_than = f"{order_of(keyed)} > {place}"
    return later_than if keyed.own_topic is None else f"({place} IS NULL OR {later_than})"
