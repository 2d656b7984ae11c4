"""Continues a coroutine that someone else has begun with `send`.

Not compiled: mypyc has no `types.coroutine`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine as generator_coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@generator_coroutine
def carried_on(
    coroutine: Coroutine[Any, Any, T],
    waits_for: Any,
    error: BaseException | None,
) -> Generator[Any, Any, T]:
    """Runs the rest of a coroutine that waits for `waits_for`. If `error` is given, throws it into
    the coroutine instead of waiting.
    """
    if error is not None and waits_for is not None:
        waits_for.cancel()
    while True:
        if error is None:
            try:
                yield waits_for
            except BaseException as thrown:  # noqa: BLE001 - passed on to the coroutine
                error = thrown
        if error is None:
            rest: T = yield from coroutine
            return rest
        try:
            waits_for = coroutine.throw(error)
        except StopIteration as done:
            result: T = done.value
            return result
        error = None
