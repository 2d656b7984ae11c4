"""Tests of users, ACLs and quotas with Apache Kafka's commands, against secured brokers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from conformance.tools.base import Tools, contains

CONFIGS = "ConfigCommand"
WITHIN_SECONDS = 30.0
SCRAM = "SCRAM-SHA-512"


def acls_add_list_remove(tools: Tools) -> None:
    name = f"acl-{uuid.uuid4().hex[:8]}"
    allowed = ("--allow-principal", "User:anna", "--operation", "Read", "--topic", name)
    said = tools.run("AclCommand", "--add", *allowed, "--group", name)
    contains(said, f"name={name}", "patternType=LITERAL", "principal=User:anna", "operation=READ")
    denied = ("--deny-principal", "User:*", "--deny-host", "192.0.2.7", "--operation", "Write")
    prefixed = ("--topic", name[:-2], "--resource-pattern-type", "prefixed")
    tools.run("AclCommand", "--add", *denied, *prefixed)
    said = tools.run("AclCommand", "--list", "--topic", name)
    contains(said, "principal=User:anna")
    assert "PREFIXED" not in said, said
    matching = ("--topic", name, "--resource-pattern-type", "match")
    said = tools.run("AclCommand", "--list", *matching)
    contains(said, "patternType=PREFIXED", "host=192.0.2.7", "permissionType=DENY")
    tools.run("AclCommand", "--remove", "--force", *allowed)
    said = tools.run("AclCommand", "--list", "--topic", name)
    assert "User:anna" not in said, said
    contains(tools.run("AclCommand", "--list", "--group", name), "principal=User:anna")
    tools.run("AclCommand", "--remove", "--force", "--group", name)
    tools.run("AclCommand", "--remove", "--force", *prefixed)


def acls_of_a_producer_and_a_consumer(tools: Tools) -> None:
    """The short forms, which stand for several ACLs."""
    name = f"acl-{uuid.uuid4().hex[:8]}"
    for form in (("--producer",), ("--consumer", "--group", name)):
        who = ("--allow-principal", "User:otto", "--topic", name)
        tools.run("AclCommand", "--add", *who, *form)
    said = tools.run("AclCommand", "--list", "--topic", name)
    contains(said, "operation=WRITE", "operation=DESCRIBE", "operation=CREATE", "operation=READ")
    tools.run("AclCommand", "--remove", "--force", "--topic", name)
    tools.run("AclCommand", "--remove", "--force", "--group", name)


def _user(tools: Tools) -> tuple[str, Tools]:
    """A new user, and the tools as that user."""
    name = f"user-{uuid.uuid4().hex[:8]}"
    entity = ("--entity-type", "users", "--entity-name", name)
    password = f"{SCRAM}=[iterations=8192,password=secret]"
    said = tools.run(CONFIGS, "--alter", *entity, "--add-config", password)
    contains(said, f"Completed updating config for user {name}")
    return name, _as(tools, name, "secret")


def _as(tools: Tools, user: str, password: str) -> Tools:
    assert tools.command_config is not None
    lines = tools.command_config.read_text().splitlines()
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    kept = [line for line in lines if not line.startswith("sasl.jaas.config=")]
    path = Path(tools.scratch) / f"{user}-{password}.properties"
    own = f'sasl.jaas.config={login} username="{user}" password="{password}";'
    path.write_text("\n".join([*kept, own]) + "\n")
    return replace(tools, command_config=path)


def users_with_passwords(tools: Tools) -> None:
    name, hers = _user(tools)
    entity = ("--entity-type", "users", "--entity-name", name)
    contains(tools.run(CONFIGS, "--describe", *entity), f"{SCRAM}=iterations=8192")
    hers.run("TopicCommand", "--list")
    wrong = _as(tools, name, "wrong").refused("TopicCommand", "--list")
    contains(wrong, "Authentication failed")
    tools.run(CONFIGS, "--alter", *entity, "--delete-config", SCRAM)
    contains(hers.refused("TopicCommand", "--list"), "Authentication failed")
    few = f"{SCRAM}=[iterations=1000,password=secret]"
    said = tools.refused(CONFIGS, "--alter", *entity, "--add-config", few)
    contains(said, "1000 is less than the minimum 4096")


def topics_of_a_user_without_permission(tools: Tools) -> None:
    """`kafka-topics` with a command config: refused, and then allowed by ACLs.

    Delete on the cluster allows to delete topics (ControllerApis.deleteTopics), and without any
    ACL for the cluster that is everybody here (`allow.everyone.if.no.acl.found`): so it gets one.
    """
    name, hers = _user(tools)
    of_cluster = ("--allow-principal", "User:somebody", "--operation", "Describe", "--cluster")
    tools.run("AclCommand", "--add", *of_cluster)
    topic = tools.topic()
    who = ("--allow-principal", "User:somebody", "--operation", "All", "--topic", topic)
    tools.run("AclCommand", "--add", *who)
    _until(lambda: topic not in hers.run("TopicCommand", "--list"))
    contains(hers.refused("TopicCommand", "--describe", "--topic", topic), "does not exist")
    who = ("--allow-principal", f"User:{name}", "--operation", "Describe", "--topic", topic)
    tools.run("AclCommand", "--add", *who)
    _until(lambda: topic in hers.run("TopicCommand", "--list"))
    said = hers.refused("TopicCommand", "--delete", "--topic", topic)
    contains(said, "Topic authorization failed")
    entity = ("--entity-type", "topics", "--entity-name", topic)
    said = hers.refused(CONFIGS, *entity, "--alter", "--add-config", "retention.ms=1")
    contains(said, "TopicAuthorizationException")
    tools.run("AclCommand", "--remove", "--force", "--topic", topic)
    tools.run("AclCommand", "--remove", "--force", *of_cluster)
    tools.run("TopicCommand", "--delete", "--topic", topic)


def _until(check: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_SECONDS
    while not check():
        assert time.monotonic() < until, "the ACL is not in force"


def quotas_of_users_clients_and_addresses(tools: Tools) -> None:
    name = f"user-{uuid.uuid4().hex[:8]}"
    user, client = ("--entity-type", "users"), ("--entity-type", "clients")
    change = ("--alter", "--add-config", "producer_byte_rate=1000000,request_percentage=50")
    for entity in (
        (*user, "--entity-name", name),
        (*user, "--entity-name", name, *client, "--entity-name", name),
        (*user, "--entity-name", name, *client, "--entity-default"),
        (*client, "--entity-name", name),
    ):
        contains(tools.run(CONFIGS, *change, *entity), "Completed updating")
        said = tools.run(CONFIGS, "--describe", *entity)
        contains(said, "producer_byte_rate=1000000", "request_percentage=50")
        tools.run(CONFIGS, "--alter", "--delete-config", "request_percentage", *entity)
        said = tools.run(CONFIGS, "--describe", *entity)
        contains(said, "producer_byte_rate=1000000")
        assert "request_percentage" not in said, said
        tools.run(CONFIGS, "--alter", "--delete-config", "producer_byte_rate", *entity)
        assert "producer_byte_rate" not in tools.run(CONFIGS, "--describe", *entity)
    address = ("--entity-type", "ips", "--entity-name", "192.0.2.9")
    rate = ("--alter", "--add-config", "connection_creation_rate=100")
    tools.run(CONFIGS, *rate, *address)
    contains(tools.run(CONFIGS, "--describe", *address), "connection_creation_rate=100")
    tools.run(CONFIGS, "--alter", "--delete-config", "connection_creation_rate", *address)
    wrong = ("--alter", "--add-config", "producer_byte_rate=-1")
    tools.refused(CONFIGS, *wrong, *user, "--entity-name", name)


TESTS = (
    acls_add_list_remove,
    acls_of_a_producer_and_a_consumer,
    users_with_passwords,
    topics_of_a_user_without_permission,
    quotas_of_users_clients_and_addresses,
)
