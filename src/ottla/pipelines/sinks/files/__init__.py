"""Folders of files."""

from ottla.pipelines.sinks.files.spec import FilesSpec
from ottla.pipelines.sinks.files.to_files import to_files

__all__ = ["FilesSpec", "to_files"]
