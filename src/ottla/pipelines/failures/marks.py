"""Words by which rows and tasks fail a batch of ours: the beginnings of texts that Spark passes on.

Plain words, without imports: what runs on Spark's executors has them by value.
"""

UNKNOWN_ID = "OTTLA_UNKNOWN_SCHEMA_ID"
"""Data with a schema's id that the plan does not know."""
CONFLICT = "OTTLA_SCHEMA_CONFLICT"
"""Data of a schema that the reader's schema cannot read."""
NO_PROTOBUF = "OTTLA_NO_PROTOBUF"
"""An executor without the package protobuf."""
UNORDERED = "OTTLA_UNORDERED_KEY"
"""A key whose records have no order."""
SEVERAL = "OTTLA_SEVERAL_RESULTS"
"""A key with several results in one batch."""
SHARED = "OTTLA_SHARED_POSITION"
"""A key with several rows of one record, which have no order."""
UNEXPECTED = "OTTLA_UNEXPECTED_ROW"
"""A row that does not fulfil an expectation, where the query is to stop."""
TRUNCATED = "OTTLA_TRUNCATED"
"""An event of Debezium which says that the table was truncated, where the query is to stop."""
SET_BACK = (
    "The checkpoint {checkpoint} was set back, for example by a backup that was restored, or is a "
    "copy: {found}. To continue would lose rows or write them twice. Use the newest checkpoint, or "
    "a new one"
)
"""A checkpoint that is older than its target, by what was found."""
