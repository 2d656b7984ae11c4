"""Protobuf data as a column: a Python UDF with `protobuf_decoder` in it.

The executors' Python needs PySpark and the package protobuf, and not Ottla: the functions are
pickled by value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.registry.protobuf_schema import Shape
from ottla.pipelines.source import protobuf_decoder
from ottla.registry import protobuf_framing
from ottla.registry.framing import head
from ottla.registry.protobuf_messages import Messages

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

VALUE: Final = "value"
FAULT: Final = "fault"


def reader_of(messages: Messages, message: str, shape: Shape) -> str:
    """Return what reads the data, as the text of a plan (`Framed.reader`)."""
    files = base64.b64encode(messages.files).decode()
    return json.dumps({"files": files, "message": message, "shape": shape})


def writer_of(messages: Messages) -> str:
    """Return which messages a schema's data may have, as the text of a plan (`Branch.writer`)."""
    return json.dumps([[list(at), one.full_name] for at, one in messages.by_index.items()])


def decoded(column: Column, framed: Framed, type_: DataType, name: str) -> Column:
    """Return a column of struct<value, fault>; null for data with an id that is not readable."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
    from pyspark.sql.types import StringType, StructField, StructType

    _send_by_value()
    reader = json.loads(framed.reader)
    messages = {
        head(one.id): {tuple(at): message for at, message in json.loads(one.writer)}
        for one in framed.branches
        if not one.refused
    }
    decode = protobuf_decoder.decoder(
        name, base64.b64decode(reader["files"]), reader["message"], reader["shape"], messages
    )
    returns = StructType([StructField(VALUE, type_), StructField(FAULT, StringType())])
    # Spark would copy a deterministic expression to each place that uses it, and decode again.
    return F.udf(decode, returns, useArrow=False).asNondeterministic()(column)


def by_value(function: Callable[..., Any]) -> bytes:
    """Return a function of the decoder as executors get it."""
    from pyspark import cloudpickle

    _send_by_value()
    return bytes(cloudpickle.dumps(function))


def _send_by_value() -> None:
    from pyspark import cloudpickle

    for module in (protobuf_framing, protobuf_decoder):
        cloudpickle.register_pickle_by_value(module)
