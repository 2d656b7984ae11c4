"""Ten mistakes for each command, and those that a later command will have: one line says what is
wrong, a second one what to type, the exit code is right, and there is no traceback.

The commands run in this process, on a real broker. A new command needs a row in `ROWS`.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.cli import context
from ottla.cli.app import COMMANDS, root
from ottla.cli.main import main
from ottla.client.admin.acls import create_acls
from ottla.client.admin.users import set_password
from ottla.client.client import Client
from ottla.client.profiles import FILE_VARIABLE
from ottla.devcluster.lock import held
from ottla.devcluster.requests import Requests
from ottla.pipelines.kafka import brokers
from ottla.pipelines.progress import group
from ottla.security.acl_words import parse_acls
from ottla.testing import Broker

NOBODY: Final = "127.0.0.1:1"
"""Port 1 is reserved, and nothing listens there."""
FAILED, USAGE, CLOSED = 1, 2, 141
MAX_LINES: Final = 5
WITHIN_S: Final = 60
PYTHON: Final = ("Traceback", "Errno", "KafkaError{", " object at 0x", "Error(", "None")
AUTHORIZED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""ACLs can be made, and the clients may do everything."""
MISTAKES: Final = (
    "unknown option",
    "missing",
    "wrong type",
    "unknown name",
    "dead broker",
    "wrong port",
    "no permission",
    "closed pipe",
    "full disk",
)
"""The tenth is Ctrl-C, which needs processes: `test_ctrl_c` below."""


@dataclass(frozen=True)
class Row:
    """The words that make each mistake, after the command's own, or why it cannot be made."""

    right: str
    """A valid command line, which prints something."""
    missing: str = "--bootstrap"
    """By default, the last option lacks its value."""
    wrong: str = ""
    """A value of the wrong type."""
    unknown: str = ""
    """A name that does not exist."""
    denied: str = ""
    """The request that the broker refuses, or words with a place that nobody may write."""
    dead: str = ""
    """For commands without --bootstrap."""
    other: str = ""
    """The same, for a port where something else listens."""
    unknown_code: int = FAILED
    denied_code: int = FAILED
    data: bytes = b""
    """Standard input."""
    cannot: dict[str, str] = field(default_factory=dict)
    """Mistakes that cannot be made, and why."""


NO_BROKER: Final = {"dead broker": "it needs no broker", "wrong port": "it needs no broker"}
NEEDS_SPARK: Final = {
    **NO_BROKER,
    **dict.fromkeys(("no permission", "closed pipe", "full disk"), "it needs Spark for its table"),
}
NEEDS_STORE: Final = dict.fromkeys(
    ("closed pipe", "full disk"), "what it prints needs the store of a broker: cli/log/stray"
)
LEFT_OUT: Final = {"no permission": "brokers leave out what their client may not see"}
OWN_FILE: Final = {**NO_BROKER, "no permission": "test_profiles.py: profiles are the user's own"}
ITS_CLUSTER: Final = {
    **NO_BROKER,
    "no permission": "who may use the folder may use its cluster",
}
PLAIN: Final = "--client-config x"
NO_SETTING: Final = "--client-config no.such=1"

ROWS: Final = {
    "console": Row(
        "--listen 127.0.0.1:0",
        wrong="--listen 127.0.0.1:x",
        unknown=NO_SETTING,
        unknown_code=USAGE,
        cannot={
            **dict.fromkeys(("dead broker", "wrong port", "no permission"), "its pages say so"),
            **dict.fromkeys(("closed pipe", "full disk"), "test_console.py: it needs a process"),
        },
    ),
    "serve": Row(
        "",
        missing="--data",
        wrong="--listen 127.0.0.1:x",
        unknown="--listen 127.0.0.1:0 -c num.partition=1",
        unknown_code=USAGE,
        dead=f"--id 1 --zookeeper {NOBODY} -c zookeeper.connection.timeout.ms=200 --data {{empty}}",
        other="--listen {other} --data {empty}",
        denied="--listen 127.0.0.1:0 --data /sys/ottla",
        cannot=dict.fromkeys(("closed pipe", "full disk"), "below: it needs a process"),
    ),
    "topic create": Row(
        "{fresh}",
        missing="",
        wrong="{fresh} --partitions x",
        unknown="{fresh} --config no.such=1",
        denied="CreateTopics",
    ),
    "topic list": Row("", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE, cannot=LEFT_OUT),
    "topic describe": Row("{topic}", wrong=PLAIN, unknown="nothing", denied="DescribeConfigs"),
    "topic alter": Row(
        "{topic} -c retention.ms=100000000",
        missing="",
        wrong="{topic} --partitions x",
        unknown="{topic} -c no.such=1",
        denied="IncrementalAlterConfigs",
    ),
    "topic delete": Row(
        "{made} --yes", missing="", wrong=f"x {PLAIN}", unknown="nothing -y", denied="DeleteTopics"
    ),
    "topic offsets": Row(
        "{topic}", missing="", wrong="{topic} --at x", unknown="nothing", denied="ListOffsets"
    ),
    "topic segments": Row(
        "{topic}",
        missing="",
        wrong="{topic} -p x",
        unknown="nothing",
        cannot={"no permission": "a fault of the kit cannot refuse Ottla's own request"},
    ),
    "topic trim": Row(
        "{filled} --before end --yes",
        missing="",
        wrong="{topic} --before-offset x",
        unknown="nothing --before end -y",
        denied="DeleteRecords",
    ),
    "produce": Row(
        "{topic}",
        missing="",
        wrong="{topic} --timeout x",
        unknown="nothing",
        denied="InitProducerId",
        data=b"a record\n",
    ),
    "consume": Row(
        "{topic}", missing="", wrong="{topic} --max x", unknown="nothing", denied="ListOffsets"
    ),
    "mirror": Row(
        "{topic} --source {bootstrap} --prefix {fresh}. --name {fresh} --once --no-groups",
        missing="",
        wrong="--source x:1 --commit-every x",
        unknown="--source nothing",
        denied="CreateTopics",
    ),
    "journey": Row(
        "{topic} 0 0",
        missing="",
        wrong="{topic} x",
        unknown="nothing 0 0",
        cannot={"no permission": "a fault of the kit cannot refuse Ottla's own request"},
    ),
    "group list": Row("", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE, denied="ListGroups"),
    "group describe": Row(
        "{group}", wrong="{group} --every x", unknown="nothing", denied="DescribeGroups"
    ),
    "group reset": Row(
        "{group} --to-earliest",
        missing="",
        wrong="{group} --to-offset x",
        unknown="nothing --to-latest",
        denied="OffsetCommit",
    ),
    "group delete": Row(
        "{made_group} --yes", missing="", wrong=f"x {PLAIN}", unknown="nothing -y",
        denied="DeleteGroups",
    ),
    "group history": Row(
        "{group_with_history}",
        wrong="{group} --last x",
        unknown="nothing",
        cannot={"no permission": "a fault of the kit cannot refuse Ottla's own request"},
    ),
    "group members": Row("{group}", wrong=PLAIN, unknown="nothing", denied="DescribeGroups"),
    "group delete-offsets": Row(
        "{made_group} --topic {topic} --yes",
        missing="",
        wrong="{group} --topic {topic}:x -y",
        unknown="nothing --topic {topic} -y",
        denied="OffsetDelete",
    ),
    "bench produce": Row(
        "{topic} --records 10",
        missing="",
        wrong="{topic} --records x",
        unknown="nothing",
        denied="InitProducerId",
    ),
    "bench consume": Row(
        "{filled} --records 1",
        missing="",
        wrong="{topic} --records x",
        unknown="nothing",
        denied="ListOffsets",
    ),
    "profile list": Row(
        "--json",
        wrong="--json=x",
        cannot={**OWN_FILE, **dict.fromkeys(("missing", "unknown name"), "it needs no name")},
    ),
    "profile show": Row(
        "{profile}",
        wrong="--json=x",
        unknown="nothing",
        cannot={**OWN_FILE, "missing": "without a name it shows the current one"},
    ),
    "profile add": Row(
        "{fresh} -b localhost:9092",
        missing="{fresh}",
        wrong="{fresh} -b localhost:x",
        cannot={**OWN_FILE, "unknown name": "every name is new"},
    ),
    "profile use": Row(
        "{profile}",
        missing="",
        unknown="nothing",
        cannot={**OWN_FILE, "wrong type": "a name is any text"},
    ),
    "profile remove": Row(
        "{made_profile}",
        missing="",
        unknown="nothing",
        cannot={**OWN_FILE, "wrong type": "a name is any text"},
    ),
    "user add": Row(
        "{fresh} --password-file {text}",
        missing="",
        wrong="{fresh} --iterations x",
        unknown="{fresh} --password-file {empty}/no",
        unknown_code=USAGE,
        denied="AlterUserScramCredentials",
    ),
    "user list": Row(
        "--json", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE,
        denied="DescribeUserScramCredentials",
    ),
    "user describe": Row(
        "{user}", missing="", wrong=f"x {PLAIN}", unknown="nothing",
        denied="DescribeUserScramCredentials",
    ),
    "user delete": Row(
        "{user} --yes", missing="", wrong=f"x {PLAIN}", unknown="nothing -y",
        denied="AlterUserScramCredentials",
    ),
    "quota add": Row(
        "--user {fresh} producer_byte_rate=10MB",
        missing="",
        wrong="--user x producer_byte_rate=x",
        unknown="--user x producer_byte_rat=1",
        unknown_code=USAGE,
        denied="AlterClientQuotas",
    ),
    "quota list": Row(
        "--json", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE,
        denied="DescribeClientQuotas",
    ),
    "quota describe": Row(
        "--user {fresh} --json", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE,
        denied="DescribeClientQuotas",
    ),
    "quota delete": Row(
        "--user {limited} --yes", missing="", wrong=f"--user x {PLAIN}",
        unknown="--user nobody --yes", denied="AlterClientQuotas",
    ),
    "acl add": Row(
        "alice Read topic {fresh}",
        missing="alice",
        wrong="alice Raed topic x",
        unknown="alice Read tpic x",
        unknown_code=USAGE,
        denied="CreateAcls",
    ),
    "acl list": Row(
        "--json", wrong=PLAIN, unknown="--kind tpic", unknown_code=USAGE, denied="DescribeAcls"
    ),
    "acl describe": Row(
        "topic {topic} --json", missing="", wrong="tpic x", denied="DescribeAcls",
        cannot={"unknown name": "every name may have ACLs"},
    ),
    "acl check": Row(
        "ANONYMOUS Read topic {topic}", missing="alice", wrong="alice Raed topic x",
        denied="DescribeAcls", cannot={"unknown name": "every name may have ACLs"},
    ),
    "acl delete": Row(
        "{allowed} --yes", missing="", wrong="alice Raed topic x", unknown="nothing --yes",
        denied="DeleteAcls",
    ),
    "certificate authority": Row(
        "--folder {empty}/{fresh}",
        missing="--folder",
        wrong="--days x",
        denied="--folder /sys/ottla",
        cannot={**NO_BROKER, "unknown name": "it needs no name"},
    ),
    "certificate broker": Row(
        "--folder {authority} --name {fresh}",
        missing="--folder",
        wrong="--days x",
        unknown="--folder {empty}/no",
        denied="--folder /sys/ottla",
        cannot=NO_BROKER,
    ),
    "certificate client": Row(
        "{fresh} --folder {authority}",
        missing="",
        wrong="x --days x",
        unknown="x --folder {empty}/no",
        denied="x --folder /sys/ottla",
        cannot=NO_BROKER,
    ),
    "certificate show": Row(
        "{authority}/authority.pem",
        missing="",
        wrong="--json=x",
        unknown="{empty}/no.pem",
        cannot={**NO_BROKER, "no permission": "it only reads"},
    ),
    "group export": Row(
        "{group}", missing="", wrong="{group} -t {topic}:x", unknown="nothing", denied="OffsetFetch"
    ),
    "group import": Row(
        "{group} --file {offsets}",
        missing="",
        wrong="{group} --file {text}",
        unknown="{group} --file {empty}/no.csv",
        denied="OffsetCommit",
    ),
    "transaction list": Row(
        "",
        wrong="--open-for x",
        unknown="--state Open",
        denied="ListTransactions",
    ),
    "transaction describe": Row(
        "{transaction}", wrong=PLAIN, unknown="nothing", denied="DescribeTransactions"
    ),
    "transaction hanging": Row(
        "--json",
        wrong="--written-before x",
        unknown="--topic nothing",
        denied="DescribeProducers",
    ),
    "transaction abort": Row(
        "{open} --yes",
        missing="",
        wrong="--topic {topic} --partition x --producer 1",
        unknown="nothing",
        denied="InitProducerId",
    ),
    "pipeline run": Row(
        "{pipeline}",
        missing="",
        wrong="{text}",
        unknown="{empty}/no.toml",
        unknown_code=USAGE,
        dead="{pipeline_dead}",
        other="{pipeline_other}",
        denied="Metadata",
        cannot=dict.fromkeys(("closed pipe", "full disk"), "test_pipeline_cli.py: it needs Spark"),
    ),
    "pipeline check": Row(
        "{pipeline} --no-spark",
        missing="",
        wrong="{text}",
        unknown="{empty}/no.toml",
        unknown_code=USAGE,
        dead="{pipeline_dead}",
        other="{pipeline_other}",
        denied="Metadata",
    ),
    "pipeline status": Row(
        "{pipeline}",
        missing="",
        wrong="{text}",
        unknown="{pipeline} --only nothing",
        dead="{pipeline_dead}",
        other="{pipeline_other}",
        denied="OffsetFetch",
    ),
    "pipeline stop": Row(
        "{pipeline}",
        missing="",
        wrong="{pipeline} --wait x",
        unknown="{pipeline} --only nothing",
        dead="{pipeline_dead}",
        other="{pipeline_other}",
        denied="OffsetFetch",
        cannot=dict.fromkeys(
            ("closed pipe", "full disk"), "it prints only of a pipeline that runs"
        ),
    ),
    "pipeline rejects": Row(
        "{pipeline}",
        missing="",
        wrong="{pipeline} --newest x",
        unknown="{pipeline} --only nothing",
        cannot=NEEDS_SPARK,
    ),
    "pipeline replay": Row(
        "{pipeline}",
        missing="",
        wrong="{pipeline} --reason",
        unknown="{pipeline} --only nothing",
        cannot=NEEDS_SPARK,
    ),
    "pipeline maintain": Row(
        "{pipeline}",
        missing="",
        wrong="{pipeline} --keep x",
        unknown="{pipeline} --only nothing",
        cannot=NEEDS_SPARK,
    ),
    "pipeline package": Row(
        "{pipeline} --glue 6.0 --to {empty}/glue",
        missing="",
        wrong="{text} --glue 6.0",
        unknown="{pipeline} --glue 0.1",
        unknown_code=USAGE,
        denied="{pipeline} --glue 6.0 --to /sys/ottla",
        denied_code=USAGE,
        cannot=NO_BROKER,
    ),
    "config describe": Row(
        "topic {topic} --all",
        missing="topic",
        wrong="topics {topic}",
        unknown="topic nothing",
        denied="DescribeConfigs",
    ),
    "config alter": Row(
        "topic {topic} retention.ms=100000000",
        missing="topic",
        wrong="topic {topic} retention.ms",
        unknown="topic {topic} retention.mss=1",
        denied="IncrementalAlterConfigs",
    ),
    "log segments": Row(
        "{partition}", missing="", wrong="{partition} --json=x", unknown="{empty}/no",
        denied="/proc/self/task", cannot=NO_BROKER,
    ),
    "log batches": Row(
        "{partition}", missing="", wrong="{partition} --max x", unknown="{empty}/no",
        denied="/proc/self/task", cannot=NO_BROKER,
    ),
    "log check": Row(
        "{partition}", missing="", wrong="{partition} --json=x", unknown="{empty}/no",
        denied="/proc/self/task", cannot=NO_BROKER,
    ),
    "log stray list": Row(
        "{strays}", missing="", wrong="{strays} --json=x", unknown="{empty}/no",
        denied="/proc/self/task/no", cannot=NO_BROKER,
    ),
    "log stray adopt": Row(
        "{stray}", missing="", wrong="{stray} --partitions x", unknown="{empty}/no",
        denied="/proc/self/task/no", cannot={**NO_BROKER, **NEEDS_STORE},
    ),
    "log stray delete": Row(
        "{stray} --yes", missing="", wrong="{stray} --yes=x", unknown="{empty}/no --yes",
        denied="/proc/self/task/no --yes", cannot=NO_BROKER,
    ),
    "cluster start": Row(
        "",
        missing="--data",
        wrong="--brokers x",
        unknown="--data {empty}/a -c num.partition=1",
        unknown_code=USAGE,
        dead=f"--zookeeper {NOBODY} --data {{empty}}/b",
        other="--brokers 1 --port {other_port} --data {empty}/c",
        denied="--data /sys/ottla",
        cannot=dict.fromkeys(
            ("closed pipe", "full disk"), "test_cluster_start.py: it starts processes"
        ),
    ),
    "cluster describe": Row(
        "", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE, cannot=LEFT_OUT
    ),
    "cluster drain": Row(
        "1",
        missing="",
        wrong="x",
        unknown="7",
        denied="ListPartitionReassignments",
        cannot=dict.fromkeys(("closed pipe", "full disk"), "cluster/test_drain.py: one broker"),
    ),
    "cluster reassign": Row(
        "{topic} --list --json",
        missing="{topic}",
        wrong="{topic} --brokers x",
        unknown="nothing --list",
        denied="ListPartitionReassignments",
    ),
    "cluster elect": Row(
        "--json",
        wrong="{topic} --partition x",
        unknown="nothing",
        cannot={"no permission": "one broker is the preferred leader of everything"},
    ),
    "cluster log-dirs": Row(
        "",
        wrong="--broker x",
        unknown="--broker 7",
        cannot={"no permission": "it shows what the other brokers answer"},
    ),
    "cluster throttle": Row(
        "", wrong="--rate x", unknown="nothing --rate 1MB", denied="DescribeConfigs"
    ),
    **{
        f"cluster {command}": Row(
            "1 --data {running}",
            missing="",
            wrong="x",
            unknown="1 --data {empty}/no",
            cannot=ITS_CLUSTER,
        )
        for command in ("kill", "stop", "restart", "pause", "resume")
    },
    "cluster add": Row(
        "--data {running}",
        missing="--rack",
        wrong="x",
        unknown="--data {empty}/no",
        cannot=ITS_CLUSTER,
    ),
    "health": Row("", wrong=PLAIN, unknown=NO_SETTING, unknown_code=USAGE, cannot=LEFT_OUT),
}  # fmt: skip


LEAVES: Final = root().leaves()
HAS_BOOTSTRAP: Final = {
    name
    for name, leaf in LEAVES.items()
    if any(each.name == "bootstrap" for each in leaf.params)
    and name not in ("console", "profile add")
}
PIPELINES: Final = ("pipeline run", "pipeline check", "pipeline status", "pipeline stop")
SLOW: Final = {"wrong port": pytest.mark.full}
"""The command waits until it is clear that no broker answers."""
CASES: Final = [
    pytest.param(name, mistake, id=f"{name}: {mistake}", marks=SLOW.get(mistake, ()))
    for name, row in ROWS.items()
    for mistake in MISTAKES
    if mistake not in row.cannot
]


def test_every_command_has_a_row() -> None:
    assert set(ROWS) == set(LEAVES), "give each command a row in ROWS"
    assert {name.split()[0] for name in ROWS} == set(COMMANDS)
    for row in ROWS.values():
        assert set(row.cannot) <= set(MISTAKES)


@dataclass(frozen=True)
class World:
    """A broker, and the names that the rows use."""

    broker: Broker
    names: dict[str, str]

    def words(self, text: str) -> list[str]:
        made = {name: make for name, make in MAKERS.items() if f"{{{name}}}" in text}
        names = {**self.names, **{name: make(self) for name, make in made.items()}}
        return shlex.split(text.format(**names))


def fresh(_world: World) -> str:
    return f"t-{uuid4().hex}"


def a_topic(world: World) -> str:
    return world.broker.create_topic().name


def a_filled_topic(world: World) -> str:
    topic = world.broker.create_topic()
    topic.produce("a")
    return topic.name


def a_group(world: World) -> str:
    """A group without members, which has committed an offset."""
    name = f"g-{uuid4().hex}"
    consumer = Consumer({"bootstrap.servers": world.broker.bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(world.names["topic"], 0, 1)], asynchronous=False)
    consumer.close()
    return name


def a_group_with_history(world: World) -> str:
    """A group whose only member has joined and left."""
    name = f"g-{uuid4().hex}"
    settings = {"bootstrap.servers": world.broker.bootstrap, "group.id": name}
    consumer, assigned = Consumer(settings), []
    consumer.subscribe([world.names["topic"]], on_assign=lambda _, partitions: assigned.append(1))
    until = time.monotonic() + 30
    while not assigned:
        assert time.monotonic() < until
        consumer.poll(0.1)
    consumer.close()
    return name


def a_profile(_world: World) -> str:
    name = f"p-{uuid4().hex}"
    assert main(["profile", "add", name, "--bootstrap", NOBODY]) == 0
    return name


def a_user(world: World) -> str:
    name = f"u-{uuid4().hex}"
    with Client(world.broker.bootstrap) as client:
        set_password(client, name, "SCRAM-SHA-256", "secret", 4096)
    return name


def a_user_with_a_quota(world: World) -> str:
    name = f"u-{uuid4().hex}"
    words = ["quota", "add", "--user", name, "producer_byte_rate=10MB"]
    assert main([*words, "--bootstrap", world.broker.bootstrap]) == 0
    return name


def a_principal_with_an_acl(world: World) -> str:
    name = f"u-{uuid4().hex}"
    with Client(world.broker.bootstrap) as client:
        create_acls(client, parse_acls(f"{name} Read topic t"))
    return name


def an_open_transaction(world: World) -> str:
    name = f"x-{uuid4().hex}"
    producer = Producer(
        {"bootstrap.servers": world.broker.bootstrap, "transactional.id": name, "linger.ms": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(a_topic(world), b"open")
    assert producer.flush(30) == 0
    return name


def a_stray(world: World) -> str:
    """A folder that was set aside, with nothing in it."""
    folder = Path(world.names["empty"]).parent / f"strays-{uuid4().hex}" / f"t-0.{'a' * 32}-stray"
    folder.mkdir(parents=True)
    return str(folder)


def strays(world: World) -> str:
    return str(Path(a_stray(world)).parent)


MAKERS: Final[dict[str, Callable[[World], str]]] = {
    "fresh": fresh,
    "user": a_user,
    "limited": a_user_with_a_quota,
    "allowed": a_principal_with_an_acl,
    "made": a_topic,
    "filled": a_filled_topic,
    "made_group": a_group,
    "group_with_history": a_group_with_history,
    "open": an_open_transaction,
    "profile": a_profile,
    "stray": a_stray,
    "strays": strays,
    "made_profile": a_profile,
}

DENIED: Final = {
    **dict.fromkeys(
        ("Metadata", "DescribeConfigs", "CreateTopics", "DeleteTopics", "DeleteRecords"),
        "TOPIC_AUTHORIZATION_FAILED",
    ),
    **dict.fromkeys(
        ("DescribeGroups", "DeleteGroups", "OffsetFetch", "OffsetCommit"),
        "GROUP_AUTHORIZATION_FAILED",
    ),
}


class Input(io.BytesIO):
    """Standard input that is not a file."""

    def fileno(self) -> int:
        return 0


PIPELINE: Final = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
[sink]
target = "{folder}/table"
[delivery]
checkpoint = "{folder}/checkpoint"
"""


class OtherServer:
    """A server that is not Kafka's: it accepts, reads a little, and closes."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            connection.close()


class SilentServer:
    """A server that accepts, and reads, and never answers."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.was_asked = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        with connection:
            try:
                while connection.recv(65536):
                    self.was_asked.set()
            except OSError:
                return


class ClusterFolder:
    """What `ottla cluster start` does on its folder, without brokers."""

    def __init__(self, folder: Path) -> None:
        self.lock = held(folder)
        self.requests = Requests(folder)
        self.ended = threading.Event()
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while not self.ended.wait(0.005):
            for request_id in self.requests.waiting():
                answer = {"broker": 1, "address": "127.0.0.1:9092", "state": "running"}
                self.requests.answer(request_id, answer)

    def close(self) -> None:
        self.ended.set()
        self.lock.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("mistakes")
    with ExitStack() as ending:
        broker = ending.enter_context(Broker(AUTHORIZED, data=folder / "data"))
        other = OtherServer()
        ending.callback(other.socket.close)
        running = ClusterFolder(folder / "running")
        ending.callback(running.close)
        topic = broker.create_topic("mistakes")
        topic.produce("a", "b")
        (folder / "text").write_text("this is a letter\n")
        (folder / "offsets").write_text("mistakes,0,1\n")
        (folder / "empty").mkdir()
        assert main(["certificate", "authority", "--folder", str(folder / "authority")]) == 0
        names = {
            "topic": topic.name,
            "bootstrap": broker.bootstrap,
            "empty": str(folder / "empty"),
            "authority": str(folder / "authority"),
            "text": str(folder / "text"),
            "offsets": str(folder / "offsets"),
            "partition": str(folder / "data" / "mistakes-0"),
            "running": str(folder / "running"),
            "profiles": str(folder / "profiles.toml"),
            "other": other.address,
            "other_port": other.address.rpartition(":")[2],
        }
        for name, address in (
            ("pipeline", broker.bootstrap),
            ("pipeline_dead", NOBODY),
            ("pipeline_other", other.address),
        ):
            text = PIPELINE.format(bootstrap=address, topic=topic.name, folder=folder)
            names[name] = str(folder / f"{name}.toml")
            (folder / f"{name}.toml").write_text(text)
        found = World(broker, names)
        names["group"] = a_group(found)
        names["transaction"] = an_open_transaction(found)
        yield found


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer costs a test less than a person."""
    monkeypatch.setattr(context, "ANSWER_WITHIN_S", 1.0)
    monkeypatch.setattr(brokers, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(group, "TIMEOUT_S", 0.3)


def words_of(name: str, mistake: str, world: World) -> list[str]:
    """The words after the command's own that make the mistake."""
    row = ROWS[name]
    given = {
        "missing": row.missing,
        "wrong type": row.wrong,
        "unknown name": row.unknown,
        "dead broker": row.dead,
        "wrong port": row.other,
        "no permission": "" if row.denied.isalpha() else row.denied,
    }.get(mistake, "")
    if given or mistake == "missing":
        return world.words(given)
    right = world.words(row.right)
    match mistake:
        case "unknown option":
            return [*right, "--no-such-option"]
        case "dead broker":
            return [*right, "-b", NOBODY]
        case "wrong port":
            return [*right, "-b", world.names["other"]]
    return right


def code_of(name: str, mistake: str) -> int:
    match mistake:
        case "unknown option" | "missing" | "wrong type":
            return USAGE
        case "unknown name":
            return ROWS[name].unknown_code
        case "no permission":
            return ROWS[name].denied_code
        case "closed pipe":
            return CLOSED
    return FAILED


def output_of(mistake: str) -> IO[str] | None:
    """Standard output, if the mistake is there."""
    if mistake == "full disk":
        return open("/dev/full", "w")
    if mistake == "closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        return os.fdopen(writing, "w")
    return None


@pytest.mark.parametrize(("name", "mistake"), CASES)
def test_mistake(
    name: str,
    mistake: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = ROWS[name]
    monkeypatch.setenv("OTTLA_BOOTSTRAP", world.broker.bootstrap)
    monkeypatch.setenv(FILE_VARIABLE, world.names["profiles"])
    monkeypatch.chdir(world.names["empty"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Input(row.data)))
    words = words_of(name, mistake, world)
    capsys.readouterr()  # what has prepared them
    output = output_of(mistake)
    if output is not None:
        monkeypatch.setattr("sys.stdout", output)
    if mistake == "no permission" and row.denied.isalpha():
        world.broker.fail(row.denied, DENIED.get(row.denied, "CLUSTER_AUTHORIZATION_FAILED"))
    try:
        code = main([*name.split(), *words])
    finally:
        world.broker.remove_faults()
    if output is not None:
        output.close()  # as at the end of the process: it must not fail again
    out, err = capsys.readouterr()
    assert code == code_of(name, mistake), err
    assert not [word for word in PYTHON if word in err], err
    if mistake == "closed pipe":
        assert "roken" not in err  # the reader has left; nobody is told
        return
    # A producer accounts for its records, also for those that were refused.
    assert out == "" or mistake == "no permission"
    first, *more = err.splitlines()[-1:] if mistake == "full disk" else err.splitlines()
    assert first.startswith("ottla "), err
    assert all(line.startswith("  ") for line in more), err
    assert len(more) < MAX_LINES, err


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(HAS_BOOTSTRAP) + sorted(PIPELINES))
def test_ctrl_c(name: str, world: World, tmp_path: Path) -> None:
    """While the command waits for a broker that does not answer."""
    words = words_of(name, "ctrl-c", world)
    # One of its own: what the command before has sent may not be read yet, and a command that is
    # interrupted while Python itself begins ends with Python's words.
    silent = SilentServer()
    if name in PIPELINES:
        text = Path(world.names["pipeline"]).read_text(encoding="utf-8")
        own = tmp_path / "pipeline_silent.toml"
        own.write_text(text.replace(world.broker.bootstrap, silent.address), encoding="utf-8")
        words = [each.replace(world.names["pipeline"], str(own)) for each in words]
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", *name.split(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=world.names["empty"],
        env={**os.environ, "OTTLA_BOOTSTRAP": silent.address},
    )
    assert silent.was_asked.wait(WITHIN_S), process.communicate(timeout=WITHIN_S)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130, err
    assert out == ""
    assert len(err.splitlines()) <= 1, err
    assert not [word for word in PYTHON if word in err], err


@pytest.mark.full
@pytest.mark.parametrize(
    ("mistake", "reason"),
    [("full disk", "No space left on device"), ("closed pipe", "Broken pipe")],
)
def test_a_broker_that_cannot_say_that_it_is_ready(
    mistake: str, reason: str, tmp_path: Path
) -> None:
    output = output_of(mistake)
    assert output is not None
    words = ["serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == FAILED
    assert done.stderr.splitlines()[-1] == (
        f"ottla serve: cannot write to standard output: {reason}"
    )
