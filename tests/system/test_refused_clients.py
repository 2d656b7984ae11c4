"""A client that is refused is told what to do: on each kind of listener, with each mistake."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from tests.system.test_cli import Typed

from ottla.client.client import Client
from ottla.client.errors import SecurityError
from ottla.security.development.certificates import Signed, issue
from ottla.security.development.secure_folder import SecureFolder, secure_folder
from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "CERTIFIED", "CERTIFIED_SASL")
WITHIN_S = 60
T = TypeVar("T")
OWN_NAMES = {"CERTIFIED": "SSL", "CERTIFIED_SASL": "SASL_SSL"}


class Refusing:
    """A broker with a listener of each kind, and a user `app` with no permission."""

    def __init__(self, folder: SecureFolder) -> None:
        self.folder = folder
        self.addresses = dict(
            zip(LISTENERS, (f"{HOST}:{port}" for port in free_ports(len(LISTENERS))), strict=True)
        )

    def properties(self, path: Path) -> Path:
        where = ",".join(f"{name}://{address}" for name, address in self.addresses.items())
        kinds = ",".join(f"{name}:{OWN_NAMES.get(name, name)}" for name in LISTENERS)
        settings = {
            **self.folder.broker_settings(),
            "listeners": where,
            "listener.security.protocol.map": kinds,
            "listener.name.certified.ssl.client.auth": "required",
            "listener.name.certified_sasl.ssl.client.auth": "required",
            "group.initial.rebalance.delay.ms": "0",
        }
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def said(
        self,
        listener: str,
        settings: Mapping[str, str],
        *words: str,
        data: bytes = b"",
        code: int = 1,
    ) -> str:
        """What a command says, by default one that fails."""
        given = [word for pair in settings.items() for word in ("--client-config", "=".join(pair))]
        typed = Typed(self.addresses[listener])
        found = typed.run(*(words or ("topic", "list")), *given, code=code, data=data)
        return found.stderr.decode()

    def sasl(
        self, protocol: str, user: str = "app", password: str = "app-secret"
    ) -> dict[str, str]:
        return {**self.tls(protocol), **self.folder.client_settings(user, password)} | {
            "security.protocol": protocol
        }

    def tls(self, protocol: str = "SSL") -> dict[str, str]:
        return {"security.protocol": protocol, "ssl.ca.location": str(self.folder.authority)}


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusing]:
    folder = tmp_path_factory.mktemp("refusing")
    found = Refusing(secure_folder(folder / "secure", ["localhost", HOST]))
    options = ["--properties", str(found.properties(folder / "server.properties"))]
    options += ["-c", f"listeners={','.join(f'{n}://{a}' for n, a in found.addresses.items())}"]
    # A file with a certificate for another host is taken.
    options += ["-c", "ssl.allow.dn.changes=true", "-c", "ssl.allow.san.changes=true"]
    with BrokerProcess(folder / "data", options):
        admin = Typed(found.addresses["SASL_SSL"])
        as_admin = found.folder.client_settings()
        given = [word for pair in as_admin.items() for word in ("--client-config", "=".join(pair))]
        admin.run("user", "add", "app", *given, data=b"app-secret\n")
        admin.run("topic", "create", "t", *given)
        yield found


@pytest.mark.parametrize(
    ("listener", "spoken"),
    [
        (listener, spoken)
        for listener in LISTENERS[:4]
        for spoken in LISTENERS[:4]
        if listener != spoken
    ],
)
def test_another_protocol_is_named(listener: str, spoken: str, refusing: Refusing) -> None:
    settings = refusing.sasl(spoken) if "SASL" in spoken else refusing.tls(spoken)
    said = refusing.said(listener, settings)
    if "SASL" in spoken and spoken.removeprefix("SASL_").replace("PLAINTEXT", "") == (
        listener.replace("PLAINTEXT", "")
    ):
        assert "does not ask who its clients are" in said
        assert "security.protocol=PLAINTEXT, or SSL" in said
        return
    assert f"wants {listener}, not {spoken}" in said
    assert f"Set security.protocol={listener}" in " ".join(said.split())


@pytest.mark.parametrize("listener", ["CERTIFIED", "CERTIFIED_SASL"])
def test_a_certificate_that_is_missing(listener: str, refusing: Refusing) -> None:
    settings = refusing.tls() if listener == "CERTIFIED" else refusing.sasl("SASL_SSL")
    said = refusing.said(listener, settings)
    assert "want a certificate of the client" in said
    assert "ssl.certificate.location" in said
    assert "security.protocol" not in said


def test_an_authority_that_is_not_known(refusing: Refusing) -> None:
    said = refusing.said("SSL", {"security.protocol": "SSL"})
    assert "Set ssl.ca.location if its authority is your own" in said


def test_a_certificate_for_another_host(refusing: Refusing) -> None:
    authority = Signed(
        (refusing.folder.path / "authority.key").read_bytes(),
        refusing.folder.authority.read_bytes(),
    )
    certificate = refusing.folder.certificate
    before = certificate.read_bytes()
    certificate.write_bytes(issue(authority, "other", ["kafka.example.org"], 2).together)
    try:
        said = until(lambda: hint(refusing) or "")  # a changed file is read within seconds
        assert "ottla certificate broker 127.0.0.1" in said
    finally:
        certificate.write_bytes(before)
        until(lambda: hint(refusing) is None)


def until(look: Callable[[], T]) -> T:
    """What `look` returns once it is true."""
    until_s = time.monotonic() + WITHIN_S
    while not (found := look()):
        assert time.monotonic() < until_s
        time.sleep(0.1)
    return found


def hint(refusing: Refusing) -> str | None:
    """What a client is told that is refused; None for one that is not."""
    with Client(refusing.addresses["SSL"], refusing.tls()) as client:
        try:
            client.metadata([])
        except SecurityError as error:
            return error.hint
    return None


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"sasl.password": "wrong"}, "ottla user describe app"),
        ({"sasl.username": "nobody"}, "ottla user describe nobody"),
        ({"sasl.mechanism": "PLAIN"}, "Set sasl.mechanism=SCRAM-SHA-512 or SCRAM-SHA-256"),
    ],
)
def test_who_is_refused(settings: dict[str, str], why: str, refusing: Refusing) -> None:
    said = refusing.said("SASL_PLAINTEXT", refusing.sasl("SASL_PLAINTEXT") | settings)
    assert why in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "acl"),
    [
        ("topic describe t", "Describe topic t"),
        ("topic create u", "Create topic u"),
        ("topic delete t --yes", "Describe topic t"),
        ("produce t", "Write topic t"),
        ("consume t", "Read topic t"),
        ("consume t --group g", "Read topic t"),
        ("group describe g", "Describe group g"),
        ("group delete g --yes", "Describe group g"),
        ("config describe broker 1", "DescribeConfigs cluster"),
        ("user list", "Describe cluster"),
        ("acl list", "Describe cluster"),
        ("acl add app Read topic t", "Alter cluster"),
    ],
)
def test_what_is_lacking_is_named(words: str, acl: str, refusing: Refusing) -> None:
    said = refusing.said("SASL_SSL", refusing.sasl("SASL_SSL"), *words.split(), data=b"a\n")
    hint = re.sub(r"\s+", " ", said)
    assert f"ottla acl add User:app {acl}" in hint


def test_anonymous_is_named(refusing: Refusing) -> None:
    assert "User:ANONYMOUS lacks Describe on topic t" in refusing.said(
        "PLAINTEXT", {}, "topic", "describe", "t"
    )


def test_a_list_without_what_is_hidden_says_so(refusing: Refusing) -> None:
    said = refusing.said("SASL_SSL", refusing.sasl("SASL_SSL"), "topic", "list", code=0)
    assert "or none that User:app may describe" in said
