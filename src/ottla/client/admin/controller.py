"""Responses of the controller that have an error for each item, and none of their own."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ottla.client.client import CodeOf
from ottla.protocol.errors import ErrorCode


def code_of_each(items: str) -> CodeOf:
    """For `Client.ask_controller`: whether another broker must be asked. As long as the controller
    is another one, all items say so. `items` is their field in the response.
    """
    find = attrgetter(items)

    def code(response: Any) -> ErrorCode:
        other = any(each.error_code is ErrorCode.not_controller for each in find(response))
        return ErrorCode.not_controller if other else ErrorCode.none

    return code
