"""From a pipeline file's text to specifications."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from website.pages import HOME, PIPELINES, ROOT

from ottla.pipelines.file.read import read_file, read_text
from ottla.pipelines.sinks.delta import DeltaSpec
from ottla.pipelines.spec.pipeline import FileSpec, FunctionSpec, TableSpec
from ottla.pipelines.spec.problem import FileError

SMALLEST = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"

[sink]
target = "./lake/flights"

[delivery]
checkpoint = "./checkpoints/flights"
"""
FULL = """
name = "late"

[source]
bootstrap_servers = ["one:9092", "two:9092"]
topic = "my-flights"
schema = "carrier STRING NOT NULL"
key_schema = "string"
starting = 2026-01-31T12:00:00Z
max_rows = 100_000
rejects = "keep"
tombstones = "mark"
unknown_fields = "keep"

[transform]
sql = "SELECT * FROM my_flights JOIN airlines USING (carrier)"

[transform.tables.airlines]
format = "csv"
path = "airlines.csv"
options = { header = true }

[sink]
target = "lake.late"
partition_by = ["carrier"]
schema_changes = "add"
keys = "id"
order_by = "timestamp"
history = true
deletes = "remove"
max_ahead = "2 hours"
compact_after = 0
deletion_vectors = false

[delivery]
checkpoint = "s3a://lake/checkpoints/late"
guarantee = "at-least-once"
trigger = "10 seconds"
on_lost = "skip"
on_rejects = "continue"
group = "late-delta"
max_rejects = 10
dead_letters = "flights-dead"

[spark]
master = "local[2]"
packages = ["org.example:one:1.0"]
jars = "jars"
ivy_settings = "ivysettings.xml"

[spark.conf]
"spark.driver.memory" = "2g"
spark.ui.enabled = false
"""
FOLDER = Path("/pipelines")


def read(text: str, file: str = "late.toml", **environ: str) -> FileSpec:
    return read_text(FOLDER / file, text, environ)


def problems(text: str, file: str = "late.toml") -> list[str]:
    with pytest.raises(FileError) as raised:
        read(text, file)
    return list(map(str, raised.value.problems))


def test_the_smallest_file_has_defaults() -> None:
    (one,) = read(SMALLEST).pipelines
    assert (one.name, one.source.topic, one.source.starting) == ("late", "flights", "earliest")
    assert one.source.kafka.bootstrap_servers == "localhost:9092"
    assert (one.transform.view, one.transform.sql, one.transform.function) == (
        "flights",
        None,
        None,
    )
    assert (one.sink.target, one.delivery.checkpoint) == (
        "/pipelines/lake/flights",
        "/pipelines/checkpoints/flights",
    )
    assert (one.delivery.group, one.delivery.guarantee) == ("late", "exactly-once")
    assert one.delivery.trigger is None
    assert isinstance(one.sink, DeltaSpec)
    assert one.sink.deletion_vectors is None, "what Ottla chooses, or Spark's default"


def test_every_field_is_read() -> None:
    spec = read(FULL)
    (one,) = spec.pipelines
    assert one.name == "late"
    source, delivery = one.source, one.delivery
    assert source.kafka.bootstrap_servers == "one:9092,two:9092"
    assert source.starting == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert (source.max_rows, source.rejects, source.tombstones) == (100_000, "keep", "mark")
    assert source.unknown_fields == "keep"
    assert one.transform.view == "my_flights"
    assert one.transform.tables == (
        TableSpec("airlines", "csv", "/pipelines/airlines.csv", None, (("header", "true"),)),
    )
    assert isinstance(one.sink, DeltaSpec)
    assert (one.sink.target, one.sink.partition_by, one.sink.schema_changes) == (
        "lake.late",
        ("carrier",),
        "add",
    )
    assert (one.sink.keys, one.sink.order_by) == (("id",), "timestamp")
    assert (one.sink.history, one.sink.deletes, one.sink.compact_after) == (True, "remove", 0)
    assert (one.sink.deletion_vectors, one.sink.max_ahead) == (False, "2 hours")
    assert delivery.checkpoint == "s3a://lake/checkpoints/late"
    assert delivery.on_rejects == "continue"
    assert (delivery.guarantee, delivery.on_lost) == ("at-least-once", "skip")
    assert (delivery.trigger, delivery.max_rejects) == (("processingTime", "10 seconds"), 10)
    assert delivery.dead_letters == "flights-dead"
    assert (spec.spark.master, spec.spark.jars) == ("local[2]", ("/pipelines/jars",))
    assert dict(spec.spark.conf) == {"spark.driver.memory": "2g", "spark.ui.enabled": "false"}


def test_all_problems_of_a_file_are_found_at_once() -> None:
    found = problems(
        """
        [source]
        bootstrap_servers = "localhost"
        toipc = "flights"
        max_rows = "many"
        starting = "erliest"

        [transfrom]
        sql = "SELECT 1"

        [sink]
        target = "no good name"
        checkpoint = "./cp"

        [delivery]
        on_lost = "skp"
        trigger = "now"
        """
    )
    for part in (
        "source.topic: is missing",
        "source.toipc: there is no such field; did you mean 'topic'?",
        "source.bootstrap_servers: ",
        "source.max_rows: 'many' is text; allowed: a whole number from 1",
        "source.starting: 'erliest' is not allowed",
        "transfrom: there is no such field; did you mean 'transform'?",
        "sink.target: 'no good name'",
        "sink.checkpoint: there is no such field; it belongs in [delivery]",
        "delivery.checkpoint: is missing",
        "delivery.on_lost: 'skp' is not allowed; allowed: 'stop', 'skip'; did you mean 'skip'?",
        "delivery.trigger: 'now' is not allowed; allowed: 'available-now'",
    ):
        assert any(one.startswith(part) for one in found), (part, found)
    assert len(found) == 11


def test_what_is_for_tables_with_keys_needs_keys() -> None:
    lines = 'order_by = "at"\nhistory = true\ndeletes = "mark"\nmax_ahead = "1 day"'
    found = problems(SMALLEST.replace("[delivery]", f"{lines}\n[delivery]"))
    assert [one.partition(":")[0] for one in found] == [
        "sink.order_by",
        "sink.history",
        "sink.deletes",
        "sink.max_ahead",
    ]
    assert found[0].endswith("is for a table with keys, such as keys = ['id']")


def test_missing_tables_are_named() -> None:
    assert problems("") == [
        "source: the table [source] is missing",
        "sink: the table [sink] is missing",
        "delivery: the table [delivery] is missing",
    ]


@pytest.mark.parametrize(
    ("written", "starting"),
    [
        ('"latest"', "latest"),
        ('"table"', "table"),
        ('"2026-01-31T12:00:00+00:00"', datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("{ 0 = 4711, 1 = 815 }", {0: 4711, 1: 815}),
    ],
)
def test_where_to_start(written: str, starting: object) -> None:
    text = SMALLEST.replace("[sink]", f"starting = {written}\n[sink]")
    assert read(text).pipelines[0].source.starting == starting


@pytest.mark.parametrize(
    "written", ["7", '"now"', "{ a = 1 }", "{ 0 = -1 }", "{}", "2026-01-31T12:00:00", "2026-01-31"]
)
def test_where_not_to_start(written: str) -> None:
    (one,) = problems(SMALLEST.replace("[sink]", f"starting = {written}\n[sink]"))
    assert one.startswith("source.starting: ")


def test_passwords_come_from_the_environment_and_are_not_shown() -> None:
    text = SMALLEST.replace("localhost:9092", "${SERVERS}")
    spec = read(text, SERVERS="etl:9092", PASSWORD="hush")
    assert spec.pipelines[0].source.kafka.bootstrap_servers == "etl:9092"
    assert "etl:9092" not in repr(spec)
    assert any("SERVERS is not set" in one for one in problems(text))


def several(*names: str, checkpoint: str = "./cp/{}") -> str:
    parts = []
    for name in names:
        own = SMALLEST.replace("./checkpoints/flights", checkpoint.format(name))
        parts.append(f'[[pipeline]]\nname = "{name}"\n' + own.replace("[", "[pipeline."))
    return "".join(parts)


def test_several_pipelines_in_one_file() -> None:
    spec = read(several("one", "two") + '[spark]\nmaster = "local[2]"\n')
    assert [one.name for one in spec.pipelines] == ["one", "two"]
    assert [one.delivery.group for one in spec.pipelines] == ["one", "two"]
    assert spec.spark.master == "local[2]"


def test_pipelines_of_one_file_share_no_checkpoint_and_no_name() -> None:
    found = problems(several("one", "one", checkpoint="./cp"))
    assert found == [
        "name: 'one' is given to several pipelines; each needs its own",
        "delivery.group: 'one' is given to several pipelines; each needs its own",
        "delivery.checkpoint: '/pipelines/cp' is given to several pipelines; each needs its own",
    ]


@pytest.mark.parametrize("text", ["pipeline = 7", "pipeline = []", "[pipeline]\na = 1"])
def test_pipelines_are_a_list(text: str) -> None:
    assert problems(text)[0].startswith("pipeline: ")


PYTHON = """
import nowhere
PIPELINE = {
    "source": {"bootstrap_servers": "localhost:9092", "topic": "flights"},
    "sink": {"target": "./lake/flights"},
    "delivery": {"checkpoint": "./cp", "trigger": "available-now"},
}

def transform(rows):
    return rows
"""


def test_a_python_file_has_its_own_function() -> None:
    (one,) = read(PYTHON, "late.py").pipelines
    assert one.transform.function == FunctionSpec(FOLDER / "late.py", "transform")
    assert one.delivery.trigger == ("availableNow", True)


def test_a_function_takes_one_argument() -> None:
    (one,) = problems(PYTHON.replace("(rows)", "(rows, spark)"), "late.py")
    assert one == "transform.function: transform needs 2 arguments; it is called with one, the rows"


def test_functions_of_a_toml_file_name_their_file() -> None:
    text = SMALLEST + '[transform]\nfunction = "late.py:late"\n'
    (one,) = read(text).pipelines
    assert one.transform.function == FunctionSpec(FOLDER / "late.py", "late")
    (said,) = problems(text.replace("late.py:late", "late"))
    assert said == "transform.function: 'late' is no function; write 'FILE.py:NAME'"
    (said,) = problems(text + 'sql = "SELECT 1"')
    assert said == "transform.function: give either sql or function, not both"


def test_lookup_tables_have_names_of_their_own() -> None:
    table = '[transform.tables.{}]\nformat = "csv"\npath = "a.csv"\n'
    assert "is the name of the topic's view" in problems(SMALLEST + table.format("flights"))[0]
    assert "is no name in SQL" in problems(SMALLEST + table.format('"a-b"'))[0]
    (one,) = problems(SMALLEST + '[transform.tables.a]\nformat = "csv"\n')
    assert one == "transform.tables.a.path: is missing, such as 'airlines.csv'"


def test_what_is_no_file_of_its_kind_is_one_problem(tmp_path: Path) -> None:
    assert problems("[source")[0].startswith("is not TOML: ")
    assert problems("x = 1", "late.py")[0].startswith("has no PIPELINE")
    with pytest.raises(FileError, match=r"nowhere\.toml: cannot be read: no such file"):
        read_file(tmp_path / "nowhere.toml", {})
    with pytest.raises(FileError, match="cannot be read: is a directory"):
        read_file(tmp_path, {})
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(FileError, match="is not UTF-8 text"):
        read_file(tmp_path / "bytes.toml", {})


def test_reading_imports_no_pyspark(tmp_path: Path) -> None:
    (tmp_path / "late.toml").write_text(SMALLEST)
    code = (
        "import sys; from pathlib import Path; from ottla.pipelines.file.read import read_file; "
        f"read_file(Path({str(tmp_path / 'late.toml')!r}), {{}}); "
        "print('pyspark' in sys.modules, 'confluent_kafka' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


PAGES_WITH_FILES = [HOME, *(page for page in PIPELINES if "failures" not in page)]


@pytest.mark.parametrize("page", PAGES_WITH_FILES)
def test_the_files_in_the_documentation_are_right(page: str) -> None:
    examples = re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert examples
    for example in examples:
        named = dict.fromkeys(re.findall(r"\$\{(\w+)\}", example), "x")
        (one,) = read(example, **named).pipelines
        assert one.source.topic == "flights"


def test_the_reference_names_every_field() -> None:
    text = (ROOT / "docs/pipeline-file.md").read_text()
    written = re.findall(r"^(\w+) = ", FULL, re.MULTILINE)
    assert len(written) > 15
    for field in [*written, "function", "view", "conf"]:
        assert f"| `{field}` |" in text, field


REGISTRY = """
[source.registry]
url = "http://localhost:8081"
basic.auth.user.info = "${USER_INFO}"
"""


def test_a_registry_is_a_url_or_a_table() -> None:
    text = SMALLEST.replace("[sink]", 'registry = "http://localhost:8081"\n[sink]')
    source = read_text(Path("/f.toml"), text, {}).pipelines[0].source
    assert source.registry is not None
    assert source.registry.given() == {"url": "http://localhost:8081"}

    text = SMALLEST.replace("[sink]", f"{REGISTRY}\n[sink]")
    spec = read_text(Path("/f.toml"), text, {"USER_INFO": "me:s3cret"})
    registry = spec.pipelines[0].source.registry
    assert registry is not None
    assert registry.given()["basic.auth.user.info"] == "me:s3cret"
    assert "s3cret" not in repr(spec)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('registry = "localhost:8081"', "source.registry: registry= needs a URL"),
        ("registry = 8081", "source.registry: registry= takes a URL"),
        ('schema = "registry:f@2"', "source.schema: 'registry:f@2' needs the field registry"),
        ('key_schema = "registry"', "source.key_schema: 'registry' needs the field registry"),
    ],
)
def test_wrong_registries(line: str, words: str) -> None:
    with pytest.raises(FileError) as refused:
        read_text(Path("/f.toml"), SMALLEST.replace("[sink]", f"{line}\n[sink]"), {})
    (problem,) = refused.value.problems
    assert str(problem).startswith(words)
