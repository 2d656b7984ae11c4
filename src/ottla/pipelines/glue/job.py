"""The job on AWS Glue: runs the pipelines of a file in the session that Glue starts.

Nothing here is Glue's own: any Spark that is given the jars runs it.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.build import open_session, start_pipeline
from ottla.pipelines.file.read import read_file


def run(script: str, name: str) -> None:
    """Run the pipeline file `name` to its end; it lies in the working folder or by the script.

    Raises PipelineError: the file is not there or wrong, or one of its pipelines failed.
    """
    logging.basicConfig(level=logging.INFO)
    folders = (Path.cwd(), Path(script).parent)
    found = [folder / name for folder in folders if (folder / name).is_file()]
    if not found:
        raise PipelineError(f"There is no {name} in {' or '.join(map(str, folders))}")
    spec = read_file(found[0], os.environ)
    spark = open_session(spec)
    queries = [start_pipeline(spark, pipeline) for pipeline in spec.pipelines]
    for query in queries:
        query.awaitTermination()
