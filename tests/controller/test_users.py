import pytest
from tests.turns import calls_of

from ottla.controller import layout
from ottla.controller.image import ClusterImage, ConfigImage, UserConfigChanged
from ottla.controller.plan import Plan, decided
from ottla.controller.users import (
    MAX_NAME_CHARACTERS,
    MAX_SALT_BYTES,
    Deletion,
    Upsertion,
    UserOutcome,
    alter_credentials,
    credential,
    iterations_of,
    read_credential,
    write_credential,
)
from ottla.coordination.tree import Create, SetData
from ottla.protocol.errors import ErrorCode
from ottla.protocol.sasl_client import Scram
from ottla.security.sasl.scram import ScramCredential, ScramExchange, salted_password

SHA_256, SHA_512 = 1, 2
SALT = b"a salt of 16 b.."


@pytest.fixture
def image() -> ClusterImage:
    return ClusterImage("cluster")


def password(user: str, word: str, mechanism: int = SHA_256, iterations: int = 4096) -> Upsertion:
    name = {SHA_256: "SCRAM-SHA-256"}.get(mechanism, "SCRAM-SHA-512")
    salted = salted_password(name, word, SALT, max(iterations, 1))
    return Upsertion(user, mechanism, iterations, SALT, salted)


def alter(image: ClusterImage, *changes: Deletion | Upsertion) -> Plan[tuple[UserOutcome, ...]]:
    deletions = [each for each in changes if isinstance(each, Deletion)]
    upsertions = [each for each in changes if isinstance(each, Upsertion)]
    plan = decided(alter_credentials(deletions, upsertions, image))
    for delta in plan.deltas:
        image.apply(delta)
    return plan


def codes(plan: Plan[tuple[UserOutcome, ...]]) -> dict[str, ErrorCode]:
    return {each.user: each.outcome.code for each in plan.reply}


def logs_in(image: ClusterImage, mechanism: str, user: str, word: str) -> bool:
    exchange = ScramExchange(mechanism, lambda name: credential(image, mechanism, name), "n", b"s")
    client = Scram(mechanism, user, word, "theirs")
    client.check(exchange.answer(client.final(exchange.answer(client.first()))))
    return exchange.identity is not None


@pytest.mark.parametrize(
    ("mechanism", "name"), [(SHA_256, "SCRAM-SHA-256"), (SHA_512, "SCRAM-SHA-512")]
)
def test_a_user_with_a_password_logs_in(image: ClusterImage, mechanism: int, name: str) -> None:
    user = "CN=alice, the 1st/\u6f22"
    plan = alter(image, password(user, "secret", mechanism))
    assert codes(plan) == {user: ErrorCode.none}
    (write,) = plan.writes
    assert isinstance(write, Create)
    assert write.path == "/config/users/CN%3Dalice%2C%20the%201st%2F%E6%BC%A2"
    assert logs_in(image, name, user, "secret")
    assert iterations_of(image.users[user]) == {mechanism: 4096}


def test_the_text_is_kafkas() -> None:
    text = "salt=YQ==,stored_key=Yg==,server_key=Yw==,iterations=4096"
    kept = ScramCredential(b"a", b"b", b"c", 4096)
    assert (read_credential(text), write_credential(kept)) == (kept, text)
    for wrong in ("", "salt=YQ==", text.replace("4096", "x"), text.replace("YQ==", "!"), "a,b,c,d"):
        assert read_credential(wrong) is None


def test_what_else_is_kept_of_the_user_stays(image: ClusterImage) -> None:
    image.apply(UserConfigChanged("a", ConfigImage({"producer_byte_rate": "1"}, 4)))
    plan = alter(image, password("a", "x"))
    (write,) = plan.writes
    assert isinstance(write, SetData)
    assert write.version == 4
    assert image.users["a"].version == 5
    alter(image, Deletion("a", SHA_256))
    assert image.users["a"] == ConfigImage({"producer_byte_rate": "1"}, 6)


def test_an_unknown_credential_is_not_removed(image: ClusterImage) -> None:
    alter(image, password("a", "x", SHA_256))
    plan = alter(image, Deletion("a", SHA_512), Deletion("b", SHA_256))
    assert set(codes(plan).values()) == {ErrorCode.resource_not_found}
    assert plan.writes == ()


def test_a_user_is_named_once(image: ClusterImage) -> None:
    plan = alter(image, password("a", "x"), password("a", "y", SHA_512), password("b", "z"))
    assert codes(plan) == {"a": ErrorCode.duplicate_resource, "b": ErrorCode.none}
    assert len(plan.reply) == 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (password("", "x"), ErrorCode.unacceptable_credential),
        (password("u" * (MAX_NAME_CHARACTERS + 1), "x"), ErrorCode.unacceptable_credential),
        (password("a", "x", 3), ErrorCode.unsupported_sasl_mechanism),
        (password("a", "x", 0), ErrorCode.unsupported_sasl_mechanism),
        (password("a", "x", iterations=4095), ErrorCode.unacceptable_credential),
        (password("a", "x", iterations=16385), ErrorCode.unacceptable_credential),
        (
            Upsertion("a", 1, 4096, bytes(MAX_SALT_BYTES + 1), b""),
            ErrorCode.unacceptable_credential,
        ),
    ],
)
def test_credentials_that_are_refused(
    image: ClusterImage, change: Upsertion, code: ErrorCode
) -> None:
    plan = alter(image, change)
    assert codes(plan) == {change.user: code}
    assert (plan.writes, plan.deltas) == ((), ())


@pytest.mark.parametrize("user", ["a b", "*", "~", "<default>", ".", "..", "a/b", "+%"])
def test_names_of_nodes(user: str) -> None:
    path = layout.user_config_path(user)
    name = path.removeprefix("/config/users/")
    assert layout.name_of(name) == user
    assert not set(name) & set("*+~/<> ")
    assert name not in (".", "..")
    assert layout.name_of("<default>") == ""


def test_a_thousand_users_cost_no_more_than_one(image: ClusterImage) -> None:
    """A log-in looks up one user. All take one salted password, which alone takes its time."""
    alter(image, password("user-0", "secret"))
    kept = image.users["user-0"]
    _, with_one = calls_of(lambda: logs_in(image, "SCRAM-SHA-256", "user-0", "secret"))
    for number in range(1_000):
        image.apply(UserConfigChanged(f"user-{number}", kept))
    assert len(image.users) == 1_000
    found, with_thousand = calls_of(lambda: logs_in(image, "SCRAM-SHA-256", "user-999", "secret"))
    assert found
    assert with_thousand <= with_one
