"""Folders of files."""

from ottla.pipelines.sinks.files.to_files import FilesSpec, to_files

__all__ = ["FilesSpec", "to_files"]
