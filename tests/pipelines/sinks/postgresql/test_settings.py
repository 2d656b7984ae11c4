"""URLs and settings of a database; no message quotes a secret."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.sinks.postgresql.settings import read_database

URL = "jdbc:postgresql://db.example.com:5432/lake"


def test_the_password_is_for_the_driver_alone() -> None:
    found = read_database(URL + "?ssl=true", "app", "s3cret", {"sslmode": "require", "x": True})
    assert found.properties()["password"] == "s3cret"
    assert (found.properties()["x"], found.properties()["user"]) == ("true", "app")
    assert found.shown == "postgresql://db.example.com:5432/lake"
    assert found.url.endswith("?ssl=true")
    assert "s3cret" not in repr(found)


def test_the_short_form_of_a_url_and_settings_that_win() -> None:
    found = read_database("postgresql://h/lake", settings={"socketTimeout": 5})
    assert found.url == "jdbc:postgresql://h/lake"
    assert found.properties()["socketTimeout"] == "5"
    assert "user" not in found.properties()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "jdbc:mysql://h/lake"}, "not that of a PostgreSQL database"),
        ({"url": None}, "this URL is not that"),
        ({"url": "postgresql://app:s3cret@h/lake"}, "this URL is not that"),
        ({"url": URL + "?user=app&password=s3cret"}, "it has user=.*as an argument"),
        ({"url": URL + "?sslpassword=s3cret"}, "one of the settings"),
        ({"url": URL, "settings": {"password": "s3cret"}}, "write password= as an argument"),
        ({"url": URL, "settings": {"a": ["s3cret"]}}, "a is list; write a text"),
        ({"url": URL, "password": 7}, "password: write a text"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words) as raised:
        read_database(**arguments)
    assert "s3cret" not in str(raised.value)
