"""A broker's requests to itself."""

from typing import Any

from ottla.network.handlers import Handler, Handlers
from ottla.network.own_request import answer_own
from ottla.network.request_context import RequestContext
from ottla.protocol.messages import messages_of

API_VERSIONS = 18


async def test_the_handler_gets_the_broker_and_the_requests_version() -> None:
    async def answer(request: Any, context: RequestContext[str]) -> Any:
        assert (context.broker, context.version, context.client_id) == ("broker", 3, "me")
        assert context.session.listener == ""
        return request.client_software_name

    handlers = Handlers((), lambda key: Handler(key, 0, 3, answer))
    build = messages_of(API_VERSIONS, 3, "request")
    request = build.ApiVersionsRequest(client_software_name="own", client_software_version="1")
    assert await answer_own("broker", handlers, request, "me") == "own"
