"""ZooKeeper's jars: PySpark's, if it is installed, else ZooKeeper's own from Maven Central.

The jars are downloaded once, 7 MB, into `$XDG_CACHE_HOME/ottla/zookeeper-<version>` (by default
below `~/.cache`). Each is checked against its SHA-256 below, when it arrives and before each use.
A download is written beside its path and then renamed: a crash leaves the whole jar or a file
`*.part`, which the next download replaces.

`OTTLA_MAVEN=URL` names another repository with Maven's layout; its jars have to be the same.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

VERSION: Final = "3.9.3"
MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2"
VARIABLE: Final = "OTTLA_MAVEN"
ANSWER_WITHIN_S: Final = 30.0
MAX_JAR_BYTES: Final = 16 * 1024 * 1024

_NETTY: Final = "4.1.118.Final"
# What the server loads, in the versions that it was released with or a later patch of them.
JARS: Final[Mapping[str, str]] = {
    f"org/apache/zookeeper/zookeeper/{VERSION}/zookeeper-{VERSION}.jar": (
        "ad6570105768d18382a762325b4460368b7089a5a77c053e682b17942e0e72b5"
    ),
    f"org/apache/zookeeper/zookeeper-jute/{VERSION}/zookeeper-jute-{VERSION}.jar": (
        "be72e2c9099413a9878ce830b65bb22e0be755dc2a22b290550ab9e03b5b4cfa"
    ),
    "org/slf4j/slf4j-api/2.0.16/slf4j-api-2.0.16.jar": (
        "a12578dde1ba00bd9b816d388a0b879928d00bab3c83c240f7013bf4196c579a"
    ),
    "org/slf4j/slf4j-simple/2.0.16/slf4j-simple-2.0.16.jar": (
        "effc32018658bea09d1e08c7d1060ccad46c086960f583d07dd7ffe9c1172a47"
    ),
    "io/dropwizard/metrics/metrics-core/4.2.30/metrics-core-4.2.30.jar": (
        "8eeac95450c03378d9d4c1dedff7118bb63508a97613f4df074c924e1b82ccfb"
    ),
    "org/xerial/snappy/snappy-java/1.1.10.7/snappy-java-1.1.10.7.jar": (
        "4c766cb3f855415ee734b2392949a0b6f12a60879334a74518deaf6270d32e36"
    ),
    "commons-io/commons-io/2.18.0/commons-io-2.18.0.jar": (
        "f3ca0f8d63c40e23a56d54101c60d5edee136b42d84bfb85bc7963093109cf8b"
    ),
    f"io/netty/netty-buffer/{_NETTY}/netty-buffer-{_NETTY}.jar": (
        "0eea4e8666a9636a28722661d8ba5fa8564477e75fec6dd2ff3e324e361f8b3c"
    ),
    f"io/netty/netty-codec/{_NETTY}/netty-codec-{_NETTY}.jar": (
        "4abd215fd1ed7ce86509d169cc9cbede5042176c265a79b3b70602b017226c3f"
    ),
    f"io/netty/netty-common/{_NETTY}/netty-common-{_NETTY}.jar": (
        "65cce901ecf0f9d6591cc7750772614ab401a84415dc9aec9da4d046f0f9a77c"
    ),
    f"io/netty/netty-handler/{_NETTY}/netty-handler-{_NETTY}.jar": (
        "26e3f8a5e859fd62cf3c13dc6d75e4e18879f000a5d0ad7f58f8679675d23dae"
    ),
    f"io/netty/netty-resolver/{_NETTY}/netty-resolver-{_NETTY}.jar": (
        "3170c225972c18b6850d28add60db15bb28d83c4e3d5b686ca220e0bd7273c8a"
    ),
    f"io/netty/netty-transport/{_NETTY}/netty-transport-{_NETTY}.jar": (
        "ab3751e717daef9c8d91e4d74728a48730bd8530b72e2466b222b2ea3fb07db9"
    ),
}
# The same, with log4j for slf4j-simple, among PySpark's few hundred.
_AMONG_PYSPARKS: Final = (
    "zookeeper-",
    "slf4j-api-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "netty-",
    "metrics-core-",
    "snappy-java-",
    "commons-io-",
    "commons-cli-",
)


class JarsError(KitError):
    """The jars could not be downloaded; one line."""


def zookeeper_jars(tell: Callable[[str], None] | None = None) -> list[Path]:
    """The class path of a ZooKeeper server. Raises JarsError if a download fails.

    `tell` gets one line before a download.
    """
    return _of_pyspark() or _own(tell)


def _of_pyspark() -> list[Path]:
    """Empty if PySpark is missing, or has no ZooKeeper."""
    spec = find_spec("pyspark")
    jars = [
        jar
        for folder in (() if spec is None else spec.submodule_search_locations or ())
        for jar in sorted((Path(folder) / "jars").glob("*.jar"))
        if jar.name.startswith(_AMONG_PYSPARKS)
    ]
    return jars if any(jar.name.startswith("zookeeper-") for jar in jars) else []


def _own(tell: Callable[[str], None] | None) -> list[Path]:
    folder = cache_folder()
    wanted = {folder / url.rpartition("/")[2]: url for url in JARS}
    missing = [jar for jar, url in wanted.items() if not _is_whole(jar, JARS[url])]
    if missing:
        source = os.environ.get(VARIABLE, MAVEN_CENTRAL).rstrip("/")
        if tell is not None:
            tell(f"Downloading ZooKeeper {VERSION} from {source} to {folder} (7 MB, once) ...")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for jar in missing:
                _download(f"{source}/{wanted[jar]}", jar, JARS[wanted[jar]])
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise JarsError(
                f"cannot download ZooKeeper {VERSION} from {source} to {folder}: {reason}. "
                f"{VARIABLE}=URL names another repository; PySpark's jars serve too: "
                "pip install pyspark"
            ) from None
    return list(wanted)


def cache_folder() -> Path:
    """Where the jars of this version are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla" / f"zookeeper-{VERSION}"


def _is_whole(jar: Path, sha256: str) -> bool:
    try:
        return hashlib.sha256(jar.read_bytes()).hexdigest() == sha256
    except OSError:
        return False


def _download(url: str, jar: Path, sha256: str) -> None:
    """Raises OSError, or JarsError if the content is another one."""
    with urllib.request.urlopen(url, timeout=ANSWER_WITHIN_S) as response:
        data = response.read(MAX_JAR_BYTES)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise JarsError(f"{url} is not the expected file: its SHA-256 is {found}, not {sha256}")
    # Two processes may download at once: each writes its own part.
    part = jar.with_name(f"{jar.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(jar)
