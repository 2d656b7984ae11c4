"""One setting reaches librdkafka's clients and Spark's, and shows no secret."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import read_settings, split_producer

SECURED = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanisms": "SCRAM-SHA-512",
    "sasl.username": "anna",
    "sasl.password": 'pass"word\\1',
}


def test_librdkafka_gets_its_own_names_and_spark_javas() -> None:
    kafka = read_settings(["a:1", "b:2"], {**SECURED, "isolation.level": "read_committed"})

    assert kafka.for_librdkafka() == {"bootstrap.servers": "a:1,b:2", **SECURED}
    assert kafka.for_spark() == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.poll.records": "5000",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.isolation.level": "read_committed",
        "kafka.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="anna" password="pass\\"word\\\\1";'
        ),
    }


def test_records_of_committed_transactions_are_read_unless_the_user_says_otherwise() -> None:
    kafka = read_settings("a:1")
    assert kafka.isolation == "read_committed"
    assert kafka.for_spark()["kafka.isolation.level"] == "read_committed"
    assert "isolation.level" not in kafka.for_librdkafka(), "an admin client has no such setting"
    everything = read_settings("a:1", {"isolation.level": "read_uncommitted"})
    assert everything.isolation == "read_uncommitted"
    assert everything.for_spark()["kafka.isolation.level"] == "read_uncommitted"


def test_a_wait_of_the_users_own_wins() -> None:
    options = read_settings("a:1", {"fetch.wait.max.ms": 200}).for_spark()
    assert options["kafka.fetch.max.wait.ms"] == "200"


def test_a_producer_of_sparks_gets_its_own_settings_and_none_of_a_consumers() -> None:
    given = {"client.id": "x", "fetch.min.bytes": 9, "linger.ms": 5, "message.max.bytes": 2_000}
    client, producer = split_producer(given | {"transaction.timeout.ms": 7})
    assert client == {"client.id": "x", "fetch.min.bytes": 9}
    assert producer == {
        "linger.ms": "5",
        "message.max.bytes": "2000",
        "transaction.timeout.ms": "7",
    }
    assert read_settings("a:1", client).for_spark_producer(producer) == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.client.id": "x",
        "kafka.linger.ms": "5",
        "kafka.batch.size": "2000",
        "kafka.max.request.size": "2000",
    }


def test_a_producer_of_sparks_sends_batches_like_librdkafkas_unless_told_otherwise() -> None:
    kafka = read_settings("a:1")
    plain = kafka.for_spark_producer({})
    assert (plain["kafka.linger.ms"], plain["kafka.batch.size"]) == ("5", "1000000")
    told = kafka.for_spark_producer({"linger.ms": "0", "batch.size": "16384"})
    assert (told["kafka.linger.ms"], told["kafka.batch.size"]) == ("0", "16384")


def test_a_client_on_an_executor_gets_the_text_of_pem_files(tmp_path: Path) -> None:
    text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(text)
    given = {"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")}
    assert read_settings("a:1", given).for_executors() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.ca.pem": text,
    }


def test_no_value_is_shown() -> None:
    kafka = read_settings("a:1", SECURED)
    for text in (repr(kafka), str(kafka), f"{kafka}"):
        assert "word" not in text.replace("sasl.password", "")
        assert "anna" not in text


@pytest.mark.parametrize(
    ("servers", "kafka", "words"),
    [
        ("localhost", {}, "write host:port"),
        ("a:1", {"sasl.pasword": "secret"}, "did you mean sasl.password"),
        ("a:1", ["security.protocol"], "takes a dict"),
        ("a:1", {"sasl.password": ["secret"]}, "sasl.password as list"),
    ],
)
def test_what_is_wrong_is_one_line_without_values(servers: str, kafka: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        read_settings(servers, kafka)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
