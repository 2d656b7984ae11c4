"""Compares the tables with the batch computation, all rows: `python -m demo.compare FOLDER`.

FOLDER has `expected/<topic>.jsonl` and the Delta tables; the environment says where the database
is. Prints JSON: for each table its rows, those that are marked as deleted, and how many rows of the
computation it lacks or has too many.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.changes import COLUMNS, TOPICS
from ottla.pipelines import PipelineError, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUIET = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False}
DRIVER = "org.postgresql:postgresql:42.7.7"


def main() -> int:
    try:
        spark = session("compare", packages=[DRIVER], conf=QUIET)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return 1
    folder = Path(sys.argv[1])
    found = [
        {"topic": topic, "table": kind, **compared(spark, folder, topic, table)}
        for topic in TOPICS
        for kind, table in (
            ("Delta", spark.read.format("delta").load(str(folder / topic))),
            ("PostgreSQL", in_database(spark, topic)),
        )
    ]
    print(json.dumps(found), flush=True)
    spark.stop()
    return 0


def in_database(spark: SparkSession, table: str) -> DataFrame:
    options = {
        "url": os.environ["OTTLA_DEMO_DATABASE"],
        "user": os.environ["OTTLA_DEMO_USER"],
        "password": os.environ["OTTLA_DEMO_PASSWORD"],
        "driver": "org.postgresql.Driver",
    }
    return spark.read.format("jdbc").options(**options, dbtable=table).load()


def compared(spark: SparkSession, folder: Path, topic: str, table: DataFrame) -> dict[str, Any]:
    columns = COLUMNS[topic]
    rows = table.where("NOT is_deleted").select(*columns).cache()
    # The batch computation is in Python alone; Spark only reads it, with the columns of the table.
    expected = spark.read.schema(rows.schema).json(str(folder / "expected" / f"{topic}.jsonl"))
    expected = expected.select(*columns)
    return {
        "rows": rows.count(),
        "deleted": table.where("is_deleted").count(),
        "missing": expected.exceptAll(rows).count(),
        "surplus": rows.exceptAll(expected).count(),
    }


if __name__ == "__main__":
    sys.exit(main())
