"""Clients are lent, answers are kept for a moment."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from ottla.client.client import Client
from ottla.client.errors import NoAnswerError, RefusedError
from ottla.console import access
from ottla.console.access import Access
from ottla.console.errors import BusyError
from ottla.protocol.errors import ErrorCode

WITHIN_S = 30.0


def new() -> Access:
    return Access("localhost:1", {}, "tests")


def test_a_client_is_lent_again_unless_it_failed() -> None:
    own = new()
    with own.client() as first, own.client() as second:
        assert second is not first
    with own.client() as again:
        assert again in (first, second)
    refused = RefusedError("do it", ErrorCode.invalid_topic_exception)
    with pytest.raises(RefusedError), own.client() as well:
        raise refused
    with own.client() as again, own.client() as other:
        assert well in (again, other)
    with pytest.raises(NoAnswerError), own.client() as broken:
        raise NoAnswerError("no answer.")
    with own.client() as one, own.client() as another:
        assert broken not in (one, another)
    own.close()


def test_an_answer_is_kept_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    own, asked = new(), []

    def ask() -> int:
        asked.append(1)
        return len(asked)

    assert [own.kept("a", 60, ask), own.kept("a", 60, ask), own.kept("b", 60, ask)] == [1, 1, 2]
    own.forget()
    assert own.kept("a", 60, ask) == 3
    assert own.kept("a", 0, ask) == 3
    monkeypatch.setattr(access, "MAX_KEPT", 2)
    for name in "cdef":
        own.kept(name, 60, ask)
    assert own.kept("a", 60, ask) == 8


def test_who_comes_meanwhile_gets_the_same_answer() -> None:
    own, asked, free, found = new(), [], threading.Event(), []

    def ask() -> int:
        asked.append(1)
        free.wait(30)
        return 7

    threads = [
        threading.Thread(target=lambda: found.append(own.kept("a", 60, ask))) for _ in range(4)
    ]
    for each in threads:
        each.start()
    free.set()
    for each in threads:
        each.join()
    assert found == [7, 7, 7, 7]
    assert len(asked) == 1


def test_who_waited_for_an_error_does_not_ask_again() -> None:
    own, asked, free, found = new(), [], threading.Event(), []

    def ask() -> int:
        asked.append(1)
        free.wait(30)
        raise NoAnswerError("no answer.")

    def visit() -> None:
        try:
            own.kept("a", 60, ask)
        except NoAnswerError as error:
            found.append(error.message)

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for each in threads:
        each.start()
    while len(own._kept) < 1 or not asked:
        time.sleep(0.01)
    time.sleep(0.2)  # until the others wait
    free.set()
    for each in threads:
        each.join()
    assert found == ["no answer."] * 4
    assert len(asked) < 4
    with pytest.raises(NoAnswerError):
        own.kept("a", 60, ask)
    assert len(asked) >= 2


def test_a_client_that_a_bug_interrupted_is_not_lent_again() -> None:
    own = new()
    with pytest.raises(ZeroDivisionError), own.client() as broken:
        raise ZeroDivisionError
    with pytest.raises(BusyError), own.client() as well:
        raise BusyError("busy.")
    with own.client() as one, own.client() as other:
        assert well in (one, other)
        assert broken not in (one, other)
        own.close()
    with own.client() as new_one:
        assert new_one not in (one, other)
    own.close()


def test_journeys_are_lent_again() -> None:
    own = new()
    with own.journeys() as first:
        pass
    with own.journeys() as again, own.journeys() as another:
        assert again is first
        assert another is not first
    own.close()


def test_what_takes_long_is_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    own, now_s, asked = new(), [100.0], []
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def ask() -> int:
        asked.append(now_s[0])
        now_s[0] += 3.0
        return len(asked)

    assert own.kept("a", 4.0, ask) == 1
    now_s[0] = 103.0 + 3.0 * access.SHARE - 0.1
    assert own.kept("a", 4.0, ask) == 1
    now_s[0] += 0.2
    assert own.kept("a", 4.0, ask) == 2
    own.forget()
    assert own.kept("a", 4.0, ask) == 3


def test_an_error_is_not_kept() -> None:
    own = new()
    with pytest.raises(NoAnswerError):
        own.kept("a", 60, lambda: (_ for _ in ()).throw(NoAnswerError("no answer.")))
    assert own.kept("a", 60, lambda: 7) == 7


def test_what_is_asked_beside_the_page_is_asked_again_after_a_change() -> None:
    own, free = new(), [threading.Event(), threading.Event()]
    asked: list[Client] = []

    def ask(client: Client) -> int:
        number = len(asked)
        asked.append(client)
        assert free[number].wait(WITHIN_S)
        return number

    def wait_for(*wanted: int | None) -> None:
        by_s = time.monotonic() + WITHIN_S
        while own.kept_soon("a", 60, ask) != wanted[-1] or len(asked) < len(wanted):
            assert own.kept_soon("a", 60, ask) in wanted
            assert time.monotonic() < by_s
            time.sleep(0.01)

    wait_for(None)
    own.forget()
    wait_for(None, None)
    free[0].set()  # it was asked before the change
    free[1].set()
    wait_for(None, 1)
    assert len(asked) == 2
    own.close()


def test_nobody_waits_for_what_is_asked_beside_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    own, free, asked = new(), threading.Event(), []
    monkeypatch.setattr(access, "SOON_AGAIN_S", 0.0)

    def ask(client: Client) -> str:
        asked.append(client)
        assert free.wait(WITHIN_S)
        if len(asked) == 2:
            raise NoAnswerError("no answer.")
        return f"answer {len(asked)}"

    assert own.kept_soon("a", 0, ask) is None
    assert own.kept_soon("a", 0, ask) is None
    assert len(asked) <= 1
    free.set()
    by_s = time.monotonic() + WITHIN_S
    while own.kept_soon("a", 0, ask) is None:
        assert time.monotonic() < by_s
        time.sleep(0.01)
    # The second fails: what is known stays, and it is asked again.
    by_s = time.monotonic() + WITHIN_S
    while len(asked) < 3:
        assert time.monotonic() < by_s
        assert str(own.kept_soon("a", 0, ask)).startswith("answer ")
        time.sleep(0.01)
    own.close()


def test_few_questions_beside_the_pages_are_asked_at_a_time() -> None:
    own, free, asked = new(), threading.Event(), []

    def ask(client: Client) -> bool:
        asked.append(client)
        assert free.wait(WITHIN_S)
        return True

    for number in range(3 * access.MAX_KEPT):
        assert own.kept_soon(f"group {number}", 60, ask) is None
    by_s = time.monotonic() + WITHIN_S
    while len(asked) < access.MAX_ASKED_SOON:
        assert time.monotonic() < by_s
        time.sleep(0.01)
    free.set()
    last = f"group {3 * access.MAX_KEPT - 1}"
    while own.kept_soon(last, 60, ask) is None:
        assert len(asked) <= access.MAX_ASKED_SOON + 1
        assert time.monotonic() < by_s
        time.sleep(0.01)
    own.close()
