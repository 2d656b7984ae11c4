"""A field of a dataclass has its description."""

from dataclasses import dataclass

from ottla.pipelines.spec.option import option, options_of


@dataclass(frozen=True)
class Example:
    target: str = option("where to", required=True, example="./x")
    mode: str = option("how", default="append", choices=("append", "merge"))
    password: str | None = option("the password", default=None, secret=True)
    found: int = 0


def test_the_options_of_a_dataclass() -> None:
    found = options_of(Example)

    assert list(found) == ["target", "mode", "password"], "a field without a description is none"
    assert (found["target"].is_required, found["target"].example) == (True, "./x")
    assert (found["mode"].kind, found["mode"].default) == ("choice", "append")
    assert found["mode"].taken == '`"append"`, `"merge"`'


def test_a_secret_is_not_shown() -> None:
    assert "s3cret" not in repr(Example("./x", password="s3cret"))
