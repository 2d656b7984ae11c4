"""What is not a page of the cluster: files, logging in, forms, colours, a cluster that is away."""

from __future__ import annotations

import threading

import pytest
from starlette.requests import Request
from starlette.types import Message
from tests.console.served_console import Visitor, console_of, serving

from ottla.console import visit
from ottla.console.application import own_path
from ottla.console.login import PasswordLogin, SaslLogin
from ottla.console.visit import MAX_READ_AT_ONCE, read_form
from ottla.console.workers import Workers
from ottla.testing import Broker
from ottla.testing.ports import free_ports

PASSWORD = "long enough it is"


def test_what_pages_load_is_here(visitor: Visitor) -> None:
    page = visitor.get("/").text
    assert "//" not in page.replace('"http://127.0.0.1', "").split("<body>")[0].replace(
        "<!doctype html>", ""
    )
    for path in ("/static/console.css", "/static/console.js", "/static/vendor/htmx-2.0.11.min.js"):
        assert path in page
        assert visitor.ask("GET", path).status == 200
    assert visitor.ask("GET", "/static/../server.py").status == 404
    assert visitor.ask("GET", "/static/%2e%2e/server.py").status == 404


def test_a_page_that_does_not_exist(visitor: Visitor) -> None:
    found = visitor.get("/nowhere")
    assert found.status == 404
    assert "There is no such page" in found.words
    assert visitor.get(f"/topics/a/messages/0/{'9' * 5000}").status == 404


def test_colours_are_kept_and_lead_back(visitor: Visitor) -> None:
    other = Visitor(visitor.port)
    assert "data-theme" not in other.get("/").text
    assert other.ask("GET", "/theme?to=dark&then=//evil.example").headers["location"] == "/"
    assert 'data-theme="dark"' in other.get("/").text
    other.ask("GET", "/theme?to=%22%3E")
    assert 'data-theme="dark"' in other.get("/").text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/topics?q=a", "/topics?q=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\nb", "/"),
        ("//[", "/"),
        ("http://[", "/"),
        ("", "/"),
    ],
)
def test_only_own_addresses_are_led_to(text: str, path: str) -> None:
    assert own_path(text) == path


def test_a_cluster_that_is_away_says_so_and_comes_back() -> None:
    (port,) = free_ports(1)
    bootstrap = f"127.0.0.1:{port}"
    with serving(console_of(bootstrap)) as visitor:
        away = visitor.get("/")
        assert away.status == 503
        assert "The cluster does not respond" in away.words
        assert "comes back by itself" in away.words
        assert 'http-equiv="refresh"' in away.text
    with Broker() as broker, serving(console_of(broker.bootstrap)) as visitor:
        assert visitor.get("/").status == 200


def test_who_has_not_logged_in_sees_nothing_and_comes_to_his_page_afterwards() -> None:
    with Broker() as broker:
        console = console_of(broker.bootstrap)
        console.login = PasswordLogin(PASSWORD, console.access)
        with serving(console) as visitor:
            asked = visitor.ask("GET", "/?x=1")
            assert asked.headers["location"] == "/login?then=%2F%3Fx%3D1"
            assert "set-cookie" not in asked.headers
            part = visitor.ask("GET", "/?x=1", headers={"HX-Request": "true"})
            assert part.headers["hx-redirect"] == "/login?then=%2F%3Fx%3D1"
            wrong = visitor.send("/login", password="wrong", then="/")
            assert wrong.status == 403
            assert "not the password" in wrong.words
            right = visitor.send("/login", password=PASSWORD, then="/?x=1")
            assert right.headers["location"] == "/?x=1"
            cookie = right.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert "Everything works" in visitor.get("/").words
            # Another site cannot log him out.
            assert visitor.send("/logout", token="wrong").status == 403
            assert visitor.send("/logout").headers["location"] == "/login"
            assert visitor.ask("GET", "/").status == 303


def test_who_guesses_passwords_holds_up_nobody() -> None:
    console = console_of("127.0.0.1:1")
    console.login = PasswordLogin(PASSWORD, console.access)
    console.logins = Workers(1, -1, "logins are tried")  # none is free
    with serving(console) as visitor:
        busy = visitor.send("/login", password=PASSWORD)
        assert busy.status == 503
        assert "logins are tried" in busy.words
        assert console.workers.waiting == 0
        long = visitor.send("/login", password="x" * (20 << 10))
        assert long.status == 400
        assert "more than 16,384 bytes" in long.words


def test_a_cluster_that_is_away_is_no_wrong_password() -> None:
    (port,) = free_ports(1)
    console = console_of(f"127.0.0.1:{port}")
    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    console.login = SaslLogin(console.access.bootstrap, sasl, "tests")
    with serving(console) as visitor:
        assert visitor.send("/login", user="a", password="b").status == 503


async def test_a_large_form_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def fields_of(body: bytearray) -> dict[str, str]:
        threads.append(threading.get_ident())
        return {"length": str(len(body))}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"a=%41" + b"x" * MAX_READ_AT_ONCE}

    monkeypatch.setattr(visit, "fields_of", fields_of)
    kind = (b"content-type", b"application/x-www-form-urlencoded")
    scope = {"type": "http", "method": "POST", "headers": [kind]}
    assert await read_form(Request(scope, receive)) == {"length": str(MAX_READ_AT_ONCE + 5)}
    assert threads != [threading.get_ident()]


def test_a_form_needs_the_token_of_its_session(visitor: Visitor) -> None:
    assert visitor.ask("POST", "/logout", b"").status == 400
    other = Visitor(visitor.port)
    assert other.send("/logout", token="guessed").status == 403


def test_two_consoles_of_a_host_have_cookies_of_their_own() -> None:
    one, other = console_of("localhost:1"), console_of("localhost:1")
    one.port, other.port = 8095, 8096
    assert one.cookie != other.cookie
    other.is_secure = True
    assert other.cookie.startswith("__Host-")
    one.close()
    other.close()
