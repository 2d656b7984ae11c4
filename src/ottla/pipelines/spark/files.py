"""Reading small files where Spark's data lies, on any file system that Spark knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files:
    """One folder of Hadoop's file system: local, HDFS, S3 ..."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._jvm: Any = spark._jvm
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._system: Any = path.getFileSystem(configuration)
        self._path: Any = self._system.makeQualified(path)

    @property
    def location(self) -> str:
        """The folder's full name with its scheme, such as file:/data/flights."""
        return str(self._path.toString())

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name) if name else self._path

    def exists(self, name: str = "") -> bool:
        return bool(self._system.exists(self._at(name)))

    def names(self, name: str = "") -> list[str]:
        """Return the names in a folder; none when it is not there."""
        if not self.exists(name):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._at(name))]

    def read(self, name: str) -> str | None:
        """Return the text of a file, None when it is not there."""
        if not self.exists(name):
            return None
        stream = self._system.open(self._at(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
