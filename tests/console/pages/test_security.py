"""Users, ACLs and quotas, and what a visitor may not see."""

from __future__ import annotations

import pytest
from tests.console.served_console import console_of, serving

from ottla.client.admin.acls import create_acls
from ottla.client.admin.quotas import alter_quotas
from ottla.client.admin.users import set_password
from ottla.client.client import Client
from ottla.quotas.entity import Entity, Kind
from ottla.security.acl_words import parse_acls
from ottla.testing import Broker

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.mark.ottla(config=AUTHORIZED)
def test_each_part_is_listed_and_searched(ottla_broker: Broker) -> None:
    with Client(ottla_broker.bootstrap) as client:
        set_password(client, "<i>ada", "SCRAM-SHA-512", "long enough it is", 4096)
        create_acls(client, parse_acls("'User:<i>ada' Read topic orders"))
        alter_quotas(client, Entity(user="<i>ada"), {Kind.PRODUCE: 1_000_000.0})
    with serving(console_of(ottla_broker.bootstrap)) as visitor:
        found = visitor.get("/security")
        assert "<i>ada SCRAM-SHA-512" in found.words
        assert "User:<i>ada allow Read topic orders" in found.words
        assert "user <i>ada producer_byte_rate 1,000,000" in found.words
        assert "<i>" not in found.text
        other = visitor.get("/security?q=no-such-part").words
        assert "ada" not in other.partition("Users 0")[2]


@pytest.mark.ottla(config={})
def test_a_cluster_without_an_authorizer_says_so(ottla_broker: Broker) -> None:
    with serving(console_of(ottla_broker.bootstrap)) as visitor:
        found = visitor.get("/security")
        assert found.status == 200
        assert "authorizer.class.name=" in found.words
