"""librdkafka's settings as Java's; that they work is shown on Apache Kafka itself."""

import subprocess
from pathlib import Path

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.java_names import check_names, to_java

PEM = "-----BEGIN {0}-----\nAAAA\n-----END {0}-----\n"


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, str]:
    names = {"ca": "CERTIFICATE", "certificate": "CERTIFICATE", "key": "ENCRYPTED PRIVATE KEY"}
    for name, kind in names.items():
        (tmp_path / f"{name}.pem").write_text(PEM.format(kind))
    return {f"ssl.{name}.location": str(tmp_path / f"{name}.pem") for name in names}


def test_pem_files_become_stores(pem: dict[str, str]) -> None:
    assert to_java({"security.protocol": "ssl", **pem, "ssl.key.password": "k"}) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": PEM.format("CERTIFICATE"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": PEM.format("CERTIFICATE"),
        "ssl.keystore.key": PEM.format("ENCRYPTED PRIVATE KEY"),
        "ssl.key.password": "k",
    }


def test_pem_texts_and_pkcs12_are_stores_as_well() -> None:
    given = {"ssl.ca.pem": "CA", "ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"}
    assert to_java(given) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/k.p12",
        "ssl.keystore.password": "p",
    }


def test_no_check_of_the_host_name_is_java_an_empty_text() -> None:
    name = "ssl.endpoint.identification.algorithm"
    assert to_java({name: "none"}) == {name: ""}
    assert to_java({name: "https"}) == {name: "https"}


def test_oauthbearer_with_a_token_endpoint() -> None:
    java = to_java(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "s",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        }
    )
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    assert java["sasl.jaas.config"] == (
        f'{module} required clientId="me" clientSecret="s" scope="kafka";'
    )
    assert java["sasl.login.callback.handler.class"] == handler
    assert java["sasl.oauthbearer.token.endpoint.url"] == "https://id/token"


SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sasl.mechanism": "PLAIN", "sasl.username": "u"}, "set security.protocol to SASL_SSL"),
        ({**SASL, "sasl.username": "u"}, "but not sasl.password"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "GSSAPI is not one of PLAIN, SCRAM-SHA-256"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "needs sasl.oauthbearer.method=oidc"),
        ({"enable.ssl.certificate.verification": "false"}, "has no counterpart"),
        ({"ssl.ca.location": "/nowhere.pem"}, "ssl.ca.location=/nowhere.pem: No such file"),
        (
            {"ssl.ca.location": str(Path(__file__).parents[1] / "conftest.py")},
            "it is not a PEM file",
        ),
    ],
)
def test_what_cannot_be_translated_is_one_line(given: dict[str, str], words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        to_java(given)
    assert "\n" not in str(caught.value)


def test_a_certificate_without_its_key_and_an_old_key_are_refused(
    pem: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=r"but not ssl\.key\.location"):
        to_java({"ssl.certificate.location": pem["ssl.certificate.location"]})
    (tmp_path / "key.pem").write_text(PEM.format("RSA PRIVATE KEY"))
    with pytest.raises(PipelineError, match="openssl pkcs8 -topk8 -in"):
        to_java(pem)


@pytest.mark.parametrize("as_text", [False, True])
def test_a_key_that_java_cannot_decrypt_is_refused_and_others_are_not(
    pem: dict[str, str], tmp_path: Path, as_text: bool
) -> None:
    for name, how in (("new", ["-v2", "aes-256-cbc"]), ("old", ["-v1", "PBE-SHA1-3DES"])):
        key = tmp_path / f"{name}.key"
        made = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]
        plain = subprocess.run(made, capture_output=True, check=True, timeout=60).stdout
        encrypt = ["openssl", "pkcs8", "-topk8", *how, "-passout", "pass:k", "-out", str(key)]
        subprocess.run(encrypt, input=plain, capture_output=True, check=True, timeout=60)
        given = dict(pem)
        if as_text:
            del given["ssl.key.location"]
            given["ssl.key.pem"] = key.read_text()
        else:
            given["ssl.key.location"] = str(key)
        if name == "old":
            assert to_java(given)["ssl.keystore.key"] == key.read_text()
            continue
        with pytest.raises(PipelineError, match="encrypted with PBES2") as caught:
            to_java(given)
        assert "-v1 PBE-SHA1-3DES -out key8.pem" in str(caught.value)
        assert key.read_text() not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sasl.mechansm", "did you mean sasl.mechanism"),
        ("sasl.jaas.config", "give sasl.username and sasl.password"),
        ("ssl.truststore.location", "give ssl.ca.location"),
        ("group.id", "to_delta takes group="),
        ("linger.ms", "see docs/pipeline-sources.md, Secured Kafka"),
    ],
)
def test_an_unknown_name_says_what_to_give(name: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        check_names({name: "secret"})
