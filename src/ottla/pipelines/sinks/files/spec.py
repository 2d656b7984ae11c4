"""`[sink]` with the `format` of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ottla.pipelines.sinks.files.sink import FORMATS, FilesSink
from ottla.pipelines.sinks.files.to_files import files_sink
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class FilesSpec(LakeOptions):
    """A folder of files, with `to_files()`'s arguments."""

    title: ClassVar[str] = "`[sink]` with `format`: files"
    formats: ClassVar[tuple[str, ...]] = FORMATS
    needs_path: ClassVar[bool] = True
    others: ClassVar[str] = "is not for files, which are appended: leave it out"

    format: str = option("the format of the files", default="", choices=FORMATS)
    partition_by: tuple[str, ...] = option(
        "the columns that a new folder is partitioned by", "names", default=(), example="'carrier'"
    )

    def sink(self, asked: Specification) -> Sink:
        """Return the folder for the rows of a frame. Raises PipelineError."""
        return files_sink(asked, self.format)

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the folder `<target>_rejected`."""
        from pyspark.sql.types import StructType

        return FilesSink(spark, self.target, StructType(), self.format).rejected(StructType())
