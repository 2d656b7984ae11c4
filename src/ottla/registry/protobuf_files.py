"""Protobuf schemas of a registry as Protobuf's own descriptors: the file and all that it imports.

Confluent's registry gives a schema as a serialized descriptor (`format=serialized`), and so do
those in which Confluent's serializers for Python registered it. Others give the text of the
.proto file, which protoc compiles, in a process of its own: it writes its errors to stderr. It
takes 0.2 s for each text. Nothing of it stays on the disk.

Imports are the schema's references, by their names. Protobuf's own files (google/protobuf),
google/type and Confluent's own need no reference.
"""

from __future__ import annotations

import base64
import binascii
import functools
import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from ottla.registry.registered import Registered, SchemaError

INSTALL_PROTOBUF: Final = "pip install 'ottla[registry,protobuf]'"
COMPILE_WITHIN_S: Final = 30
MAX_SHOWN: Final = 200

_KNOWN: Final = {
    "google/protobuf/": "google.protobuf",
    "google/type/": "google.type",
    "confluent/": "confluent_kafka.schema_registry.confluent",
}
_IMPORT: Final = re.compile(r'\bimport\s+(?:public\s+|weak\s+|option\s+)?"([^"]+)"\s*;')
_SOURCE: Final = "schema.proto"
_ERROR: Final = re.compile(rf"{re.escape(_SOURCE)}:(\d+:\d+: .*)")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


def require_protobuf() -> None:
    """Raise SchemaError where the package protobuf is missing."""
    if _found("google.protobuf") is None:
        raise SchemaError(f"Protobuf needs the package protobuf. Type: {INSTALL_PROTOBUF}")


@functools.lru_cache(maxsize=1_000)
def descriptor_set(schema: Registered) -> bytes:
    """Return the serialized FileDescriptorSet of a schema: its file last, its imports before it.

    Raises SchemaError: packages that are missing, an import that is none of the references,
    text that protoc refuses.
    """
    require_protobuf()
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files: dict[str, Any] = {}
    _add(schema, f"schema-{schema.id}.proto", {}, files)
    found: bytes = FileDescriptorSet(file=files.values()).SerializeToString()
    return found


def _add(
    schema: Registered, name: str, around: dict[str, Registered], files: dict[str, Any]
) -> None:
    """Add a file after those that it imports; `around` are the references of those that import
    it, which some clients do not repeat.
    """
    if name in files:
        return
    named = around | dict(schema.references)
    file = _decoded(schema.text, name)
    imports = _IMPORT.findall(schema.text) if file is None else list(file.dependency)
    for one in imports:
        if one in named and one != name:
            _add(named[one], one, named, files)
        else:
            _add_known(one, files)
        if file is not None and one not in files:
            raise SchemaError(_lacks(schema, one))
    if file is None:
        file = _compiled(schema, name, files)
    files[name] = file


def _decoded(text: str, name: str) -> Any | None:
    """Return the descriptor of a file in base64, None for text."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    if not _BASE64.fullmatch(text):
        return None
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text))
    except (DecodeError, binascii.Error):
        return None
    file.name = name
    return file


def _add_known(name: str, files: dict[str, Any]) -> None:
    """Add a file that needs no reference, and its imports; one that nobody has is left out."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    package = next((found for start, found in _KNOWN.items() if name.startswith(start)), None)
    if name in files or package is None or not name.endswith(".proto"):
        return
    start = next(start for start in _KNOWN if name.startswith(start))
    inner = name.removeprefix(start).removesuffix(".proto").replace("/", ".")
    module = f"{package}.{inner}_pb2"
    if _found(module) is None:
        return
    file = FileDescriptorProto()
    importlib.import_module(module).DESCRIPTOR.CopyToProto(file)
    for one in file.dependency:
        _add_known(one, files)
    files[name] = file


def _compiled(schema: Registered, name: str, files: dict[str, Any]) -> Any:
    """Return the descriptor of a file's text. Raises SchemaError."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    if _found("grpc_tools.protoc") is None:
        raise SchemaError(
            f"{schema.shown} is a .proto file's text, which grpcio-tools compiles. "
            f"Type: {INSTALL_PROTOBUF}"
        )
    with tempfile.TemporaryDirectory(prefix="ottla-protoc-") as folder:
        work = Path(folder)
        # Names of references are any text, so the file to compile has a name of its own.
        source, imports, out = work / _SOURCE, work / "imports", work / "out"
        source.write_text(schema.text, "utf-8")
        imports.write_bytes(FileDescriptorSet(file=files.values()).SerializeToString())
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={work}"]
        if files:
            command.append(f"--descriptor_set_in={imports}")
        command += [f"--descriptor_set_out={out}", source.name]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=COMPILE_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise SchemaError(
                f"{schema.shown} does not compile within {COMPILE_WITHIN_S} s"
            ) from None
        if done.returncode:
            raise SchemaError(_refusal(schema, done.stderr.splitlines()))
        (file,) = FileDescriptorSet.FromString(out.read_bytes()).file
    assert isinstance(file, FileDescriptorProto)
    file.name = name
    return file


def _refusal(schema: Registered, lines: list[str]) -> str:
    """Return why protoc does not compile a schema, by what it wrote."""
    for line in lines:
        if line.endswith(": File not found."):
            return _lacks(schema, line.removesuffix(": File not found."))
    # Protoc's own library writes lines of its log, too.
    named = [found[1] for line in lines if (found := _ERROR.search(line))]
    words = (named or lines or ["protoc gives no reason"])[0].strip()[:MAX_SHOWN].rstrip(".")
    return f"{schema.shown} is no Protobuf schema: {words}"


def _lacks(schema: Registered, name: str) -> str:
    return (
        f"{schema.shown} imports {name}, which is none of its references: register it with a "
        "reference of that name"
    )


def _found(module: str) -> Any | None:
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a package around it is missing
        return None
