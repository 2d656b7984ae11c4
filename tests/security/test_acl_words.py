"""ACLs as words: what they mean, and what is said of wrong ones."""

from __future__ import annotations

import pytest

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.security.acl_words import AclWordsError, parse_acls, words_of

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY


def acl(
    principal: str,
    operation: Operation,
    resource: Resource,
    name: str,
    *,
    pattern: PatternType = LITERAL,
    host: str = "*",
    permission: Permission = ALLOW,
) -> Acl:
    return Acl(Pattern(resource, name, pattern), Entry(principal, host, operation, permission))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (
            "alice Read,write topic orders",
            [
                acl("User:alice", Operation.READ, Resource.TOPIC, "orders"),
                acl("User:alice", Operation.WRITE, Resource.TOPIC, "orders"),
            ],
        ),
        (
            "User:CN=bob,O=x Read group 'a b' --prefixed --host 10.0.0.0/8 --host ::1",
            [
                acl(
                    "User:CN=bob,O=x",
                    Operation.READ,
                    Resource.GROUP,
                    "a b",
                    pattern=PREFIXED,
                    host=host,
                )
                for host in ("10.0.0.0/8", "::1")
            ],
        ),
        (
            "--deny User:* idempotent-write cluster",
            [
                acl(
                    "User:*",
                    Operation.IDEMPOTENT_WRITE,
                    Resource.CLUSTER,
                    "kafka-cluster",
                    permission=DENY,
                )
            ],
        ),
        (
            "app All transactional-id '*'",
            [acl("User:app", Operation.ALL, Resource.TRANSACTIONAL_ID, "*")],
        ),
    ],
)
def test_what_words_mean(words: str, meant: list[Acl]) -> None:
    assert parse_acls(words) == meant
    assert [again for each in meant for again in parse_acls(words_of(each))] == meant


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("alice Read", "expected a principal, operations, and a kind"),
        ("alice Read topic a b", "expected a principal"),
        ("alice Raed topic a", "'Raed' is no operation on a topic"),
        ("alice ClusterAction topic a", "'ClusterAction' is no operation on a topic"),
        ("alice Read tpic a", "'tpic' is no kind of resource"),
        ("alice Read topic", "topic needs a name"),
        ("alice Alter cluster other", "no other name than kafka-cluster"),
        ("alice Alter cluster --prefixed", "needs the beginning of names"),
        ("alice Read topic '*' --prefixed", "needs the beginning of names"),
        ("alice Read topic a --host 10.0.0.0/40", "no address"),
        ("alice Read topic a --host", "no address"),
        ("User: Read topic a", "expected a principal as Type:name"),
        ("alice Read topic 'a", "No closing quotation"),
    ],
)
def test_wrong_words_are_a_sentence(words: str, why: str) -> None:
    with pytest.raises(AclWordsError, match=why):
        parse_acls(words)
