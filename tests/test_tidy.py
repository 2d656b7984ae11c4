"""The tree follows the rules that readers rely on: names say what is inside, words are plain."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "src",
    "tests",
    "bench",
    "components",
    "conformance",
    "demo",
    "faults",
    "simulation",
    "website",
)
BANNED_NAMES = ("util", "utils", "helper", "helpers", "manager", "managers", "misc", "common")

PAGES = (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"))
UNCLEAR_WORDS = {
    "anew": "again, or from the start",
    "at one stroke": "atomically, or in one step",
    "behind the end": "past the end",
    "come to be": "be created",
    "comes to be": "is created",
    "hitherto": "so far",
    "lest": "so that ... not",
    "need not": "does not have to",
    "needs it not": "does not need it",
    "needs not": "does not need",
    "passed over": "ignored, or skipped",
    "reckoned": "estimated",
    "tells of": "reports",
    "thereof": "of it",
    "told of": "notified",
    "unless told": "unless ... says otherwise",
    "wherein": "in which",
    "whoever": "the broker that, the client that",
    "without a word": "silently",
}
"""Words that a technical writer would not use, and what to write instead."""

PARTITION_AS_PLACE = re.compile(
    r"\bplaces?\b.*\b(TopicPartition|partition\(\), \w+\.offset)\b|\bTopicPartition\b.*\bplaces?\b"
)
"""A name for a partition, or for a partition and an offset, that Kafka does not have: write
partition, offset or position.
"""

OTHER_INSTALL = re.compile(
    r"""['"`]\.\[[a-z,]+\]|install\s+(?:"ottla\[|['"]?ottla(?![-\w\[]))|pip\s*\n\s*install"""
)
"""What is not `pip install 'ottla[extra]'`, the one form that works in any folder (once Ottla is
installed) and that messages name, too. `pip install ottla` finds nothing on PyPI.
"""

FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_names_say_what_is_inside() -> None:
    found = [
        name_of(path)
        for path in FILES
        if not set(path.stem.lower().split("_")).isdisjoint(BANNED_NAMES)
    ]
    assert not found, "\n".join(found)


def test_each_test_file_stands_for_a_source_file() -> None:
    """One test file per source file: `tests/log/test_segment.py` is for `src/ottla/log/segment.py`.

    `tests/system/` holds those that test the product as a whole, from outside. A model that tests
    compare the product with is a source, too.
    """
    found = []
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
        room = path.parent.relative_to(ROOT / "tests")
        if room.name == "system":
            continue
        source = path.stem.removeprefix("test_") + ".py"
        # A subfolder of tests may be a room of its own or a part of the room above it.
        places = [
            root / folder / source
            for root in (ROOT / "src" / "ottla", ROOT, ROOT / "tests")
            for folder in (room, room.parent)
        ]
        if not any(place.is_file() for place in places):
            found.append(f"{name_of(path)} tests no source file")
    assert not found, "\n".join(found)


def test_words_are_those_of_technical_documentation() -> None:
    """Short sentences, the subject first, the terms of Apache Kafka's documentation."""
    unclear = re.compile(rf"\b({'|'.join(UNCLEAR_WORDS)})\b", re.IGNORECASE)
    found = [
        f"{name_of(path)}: {match[0]!r}, write {UNCLEAR_WORDS[match[0].lower()]!r}"
        for path in (*FILES, *PAGES)
        if path != Path(__file__)
        for match in unclear.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)


def test_partitions_and_offsets_have_kafkas_names() -> None:
    found = [
        f"{name_of(path)}: {match[0]!r}"
        for path in FILES
        if path != Path(__file__)
        for match in PARTITION_AS_PLACE.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)
    assert PARTITION_AS_PLACE.search("ends: dict = {place: 0 for place in TopicPartition}")
    assert not PARTITION_AS_PLACE.search("takes the place of the member")


def test_extras_are_installed_in_one_form() -> None:
    found = [
        f"{name_of(path)}: {match[0]!r}"
        for path in (*FILES, *PAGES)
        if path != Path(__file__)
        for match in OTHER_INSTALL.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)
    for other in ("pip install '.[spark]'", 'pip install "ottla[spark]"', "`pip install ottla`"):
        assert OTHER_INSTALL.search(other), other
    for right in ("pip install 'ottla[spark,java]'", "pip install .", "pip install ottla-*.whl"):
        assert not OTHER_INSTALL.search(right), right


def test_extras_that_are_named_exist() -> None:
    """In the pages, and in the messages of commands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {
        extra
        for path in (*FILES, *PAGES)
        for listed in re.findall(r"'ottla\[([a-z,]+)\]'", path.read_text())
        for extra in listed.split(",")
    }
    assert "spark" in named
    assert named - {"extra"} <= project["optional-dependencies"].keys()


PYSPARKS_OWN = {
    *("_jvm", "_jdf", "_jsparkSession", "_jsq", "_jsc", "_sc", "_gateway", "_gateway_client"),
    *("_java", "_conf", "_origin", "_desc"),
}
"""Private attributes of PySpark's objects, of py4j's and of the room's own."""

PUBLIC = {"_asdict", "_exit"}
"""Names with an underscore that Python documents."""

SPARKS_JVM = ROOT / "src" / "ottla" / "pipelines" / "spark" / "jvm"


def test_one_room_reads_the_private_attributes_of_pyspark() -> None:
    """A private name in lower case that Ottla has not defined is that of a library."""
    trees = {
        path: ast.parse(path.read_text())
        for path in (ROOT / "src" / "ottla").rglob("*.py")
        if SPARKS_JVM not in path.parents
    }
    defined = {name for tree in trees.values() for name in names_defined(tree)} | PUBLIC
    found = [
        f"{name_of(path)}: {name}"
        for path, tree in trees.items()
        if path.parent.name == "cli" or "pipelines" in path.parts
        for name in names_read(tree)
        if name in PYSPARKS_OWN or (re.match("_[a-z0-9](?!.*__$)", name) and name not in defined)
    ]
    assert not found, "\n".join(found)


def names_defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def names_read(tree: ast.AST) -> Iterator[str]:
    """Attributes, those of getattr(), what is imported, and modules of py4j's but its errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names)
            if (node.module or "").startswith("py4j") and node.module != "py4j.protocol":
                yield "_gateway"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if node.func.id in ("getattr", "hasattr") and texts:
                yield str(texts[0])
