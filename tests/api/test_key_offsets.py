"""The request for a key's offsets: its fields, its refusals and its errors."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ottla.api.key_offsets import KEY, handle_json
from ottla.api.table import find

REQUEST = {
    "key_offsets": 1,
    "topic": "t",
    "partition": 0,
    "key": base64.b64encode(b"k").decode(),
    "begin": 0,
    "end": 10,
    "from_end": True,
    "most": 5,
}


def test_it_is_in_the_dispatch_table_and_takes_json() -> None:
    handler = find(KEY)
    assert handler is not None
    assert handler.takes_json


@pytest.mark.parametrize(
    "wrong",
    [
        {"key_offsets": 2},
        {"topic": ""},
        {"topic": None},
        {"partition": -1},
        {"partition": None},
        {"key": None},
        {"key": "no base64!"},
        {"key": base64.b64encode(bytes(70_000)).decode()},
        {"begin": -1},
        {"end": 2**63},
        {"end": True},
        {"from_end": 1},
        {"most": 0},
        {"most": 1001},
        {"most": True},
    ],
)
async def test_an_invalid_request_is_refused(wrong: dict[str, Any]) -> None:
    context: Any = None
    request = {name: value for name, value in (REQUEST | wrong).items() if value is not None}
    answer = await handle_json(request, context)
    assert answer["error"]["code"] == "bad_request"
