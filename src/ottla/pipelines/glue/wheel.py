"""The wheel of `ottla.pipelines` alone, without the broker; it needs confluent-kafka only.

Format (the binary distribution format of PyPA, version 1.0), a zip archive:

    ottla/__init__.py, ottla/accelerator.py,
    ottla/pipelines/**, ottla/registry/**     the modules
    ottla_pipelines-<version>.dist-info/      METADATA, WHEEL, RECORD

RECORD lists each file with its SHA-256 (URL-safe base64 without padding) and its size in bytes.
All times in the archive are 1980-01-01, so the same modules give the same bytes. The archive is
written to a temporary name and renamed: a crash leaves no half wheel.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Final

import ottla

NAME: Final = "ottla_pipelines"
REQUIREMENTS: Final = ("confluent-kafka>=2.8",)
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def write(folder: Path) -> Path:
    """Write the wheel into a folder and return its path. Raises OSError."""
    base = f"{NAME}-{ottla.__version__}"
    info = f"{base}.dist-info"
    files = {**_modules(), f"{info}/METADATA": _metadata(), f"{info}/WHEEL": _wheel()}
    record = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = folder / f"{base}-py3-none-any.whl"
    partial = wheel.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    os.replace(partial, wheel)
    return wheel


def _modules() -> dict[str, bytes]:
    assert ottla.__file__ is not None
    root = Path(ottla.__file__).parent
    # ottla/__init__.py asks accelerator.py, and nothing else of the broker.
    alone = [root / "__init__.py", root / "accelerator.py"]
    rooms = [root / "pipelines", root / "registry"]  # the second is all that the first imports
    found = [*alone, *(file for room in rooms for file in sorted(room.rglob("*.py")))]
    return {f"ottla/{file.relative_to(root).as_posix()}": file.read_bytes() for file in found}


def _metadata() -> bytes:
    lines = [
        "Metadata-Version: 2.1",
        "Name: ottla-pipelines",
        f"Version: {ottla.__version__}",
        "Summary: Ottla's Spark pipelines without its broker.",
        "License: Apache-2.0",
        "Requires-Python: >=3.11",
        *(f"Requires-Dist: {requirement}" for requirement in REQUIREMENTS),
    ]
    return ("\n".join(lines) + "\n").encode()


def _wheel() -> bytes:
    return (
        f"Wheel-Version: 1.0\nGenerator: ottla {ottla.__version__}\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n"
    ).encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
