"""Small files where Spark's data lies, on any file system that Spark knows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import gateway, is_instance, java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FS: Final = "org.apache.hadoop.fs"
_PATH: Final = f"{_FS}.Path"
_LOCAL: Final = f"{_FS}.LocalFileSystem"


class DamagedFileError(OSError):
    """A file is not as the checksum says that Hadoop keeps beside it."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The size of a file, and when it was written last, in seconds since 1970."""

    size_bytes: int
    modified_s: float


class Files:
    """One folder of Hadoop's file system: local, HDFS, S3 ..."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        path = java_class(spark, _PATH)(folder)
        configuration = java_session(spark).sessionState().newHadoopConf()
        self._system: Any = path.getFileSystem(configuration)
        self._path: Any = self._system.makeQualified(path)

    @property
    def location(self) -> str:
        """The folder's full name with its scheme, such as file:/data/flights."""
        return str(self._path.toString())

    def _at(self, name: str) -> Any:
        return java_class(self._spark, _PATH)(self._path, name) if name else self._path

    def exists(self, name: str = "") -> bool:
        return bool(self._system.exists(self._at(name)))

    def is_file(self) -> bool:
        """Tell whether this is a file and no folder."""
        return self.exists() and bool(self._system.getFileStatus(self._path).isFile())

    def names(self, name: str = "") -> list[str]:
        """Return the names in a folder; none when it is not there."""
        if not self.exists(name):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._at(name))]

    def status(self, name: str) -> FileStatus | None:
        """Return what the file system says of a file, None when it is not there."""
        status = _unless_gone(lambda: self._system.getFileStatus(self._at(name)))
        if status is None:
            return None
        return FileStatus(int(status.getLen()), int(status.getModificationTime()) / 1_000)

    def read(self, name: str) -> str | None:
        """Return the text of a file, None when it is not there. Raises DamagedFileError."""
        from py4j.protocol import Py4JJavaError

        if not self.exists(name):
            return None
        # Its owner may delete it now: a run that ends gives its lease back.
        stream = _unless_gone(lambda: self._system.open(self._at(name)))
        if stream is None:
            return None
        try:
            texts = java_class(self._spark, "org.apache.commons.io.IOUtils")
            return str(texts.toString(stream, "UTF-8"))
        except Py4JJavaError as error:
            if is_instance(error.java_exception, f"{_FS}.ChecksumException"):
                raise DamagedFileError(f"{self.location}/{name} is damaged") from error
            raise
        finally:
            stream.close()

    def first_line(self, name: str) -> str | None:
        """Return the first line of a file without its end, None when there is none."""
        stream = _unless_gone(lambda: self._system.open(self._at(name)))
        if stream is None:
            return None
        try:
            reader = java_class(self._spark, "java.io.InputStreamReader")(stream, "UTF-8")
            line = java_class(self._spark, "java.io.BufferedReader")(reader).readLine()
            return None if line is None else str(line)
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Replace a file as a whole: a crash leaves the old text or the new one, never a part.

        The text goes to a temporary file beside it, which is renamed. A file system that cannot
        rename over a file (an object store) makes a file visible only when it is complete.
        """
        from py4j.protocol import Py4JJavaError

        # Spark's own files begin with a dot while they are not complete; so does this one.
        temporary = f".{name}.{uuid.uuid4().hex[:8]}.tmp"
        if is_instance(self._system, _LOCAL):
            self._replace_local(name, temporary, text)
            return
        contexts = java_class(self._spark, f"{_FS}.FileContext")
        try:
            context = contexts.getFileContext(self._path.toUri(), self._system.getConf())
        except Py4JJavaError as error:
            if "UnsupportedFileSystemException" not in str(error):
                raise
            _create(self._system, self._at(name), text)
            return
        _create(self._system, self._at(temporary), text)
        rename = java_class(self._spark, f"{_FS}.Options$Rename")
        options = gateway().new_array(rename, 1)
        options[0] = rename.OVERWRITE
        context.rename(self._at(temporary), self._at(name), options)

    def _replace_local(self, name: str, temporary: str, text: str) -> None:
        """Rename a file over another one without Hadoop's checksum file beside it.

        With it there are two renames, and a crash between them leaves a text that Hadoop refuses
        to read. `FileContext` also starts eight processes to look for symbolic links, and
        Hadoop's `create` one to set the permissions, where it has no native library.

        The text is on the disk before it gets its name: after a loss of power some file systems
        have an empty file otherwise.
        """
        raw = self._system.getRawFileSystem()
        raw.mkdirs(self._path)
        part = raw.pathToFile(self._at(temporary))
        is_there = False
        try:
            stream = java_class(self._spark, "java.io.FileOutputStream")(part)
            try:
                stream.write(bytearray(text.encode()))
                stream.getFD().sync()
            finally:
                stream.close()
            raw.delete(self._system.getChecksumFile(self._at(name)), False)
            is_there = bool(raw.rename(self._at(temporary), self._at(name)))
        finally:
            if not is_there:
                part.delete()  # a disk stays full for hours, and a run beats all the time
        if not is_there:
            raise OSError(f"{self.location}/{temporary} cannot be renamed to {name}")

    def delete(self, name: str) -> None:
        """Delete a file or a folder with all in it; nothing happens when it is not there."""
        self._system.delete(self._at(name), True)

    def move(self, name: str, to: str) -> None:
        """Move a file or a folder inside this folder. Raises OSError where it cannot be moved."""
        self._system.mkdirs(self._at(to).getParent())
        if not self._system.rename(self._at(name), self._at(to)):
            raise OSError(f"{self.location}/{name} cannot be moved to {to}")


def _unless_gone(call: Callable[[], Any]) -> Any:
    """Return what a call returns, None where it does not find its file."""
    from py4j.protocol import Py4JJavaError

    try:
        return call()
    except Py4JJavaError as error:
        if is_instance(error.java_exception, "java.io.FileNotFoundException"):
            return None
        raise


def _create(system: Any, path: Any, text: str) -> None:
    _write(system.create(path, True), text)


def _write(stream: Any, text: str) -> None:
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()
