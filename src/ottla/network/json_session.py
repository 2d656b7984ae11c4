"""The subprotocol `ottla.json`: a page reads and writes topics with objects of JSON.

    {"type": "login", "mechanism": "PLAIN", "username": "alice", "password": "secret"}
    {"type": "login", "mechanism": "OAUTHBEARER", "token": "..."}
    {"type": "subscribe", "id": 1, "topic": "t", "from": "latest", "key": "k", "permits": 100}
    {"type": "permit", "id": 1, "count": 100}
    {"type": "unsubscribe", "id": 1}
    {"type": "produce", "id": 2, "topic": "t", "key": "k", "value": "v", "headers": {}}

Each has one answer with its id, `error` among them; a subscription also has `record`s, as many as
there are permits.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

from ottla.network.authentication import SASL_AUTHENTICATE, SASL_HANDSHAKE
from ottla.network.frame_protocol import FrameProtocol
from ottla.network.json_pipe import JsonPipe, Outside, PipeClosedError
from ottla.network.json_record import MessageError, bytes_in, object_of, record_in
from ottla.network.json_subscription import Subscription
from ottla.network.json_text import is_long, read_message
from ottla.network.peer_security import Login, log_in
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.sasl_client import SaslError
from ottla.records.build import build_batch
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.murmur2 import partition_of_key
from ottla.runtime.background import Background
from ottla.runtime.cpu_thread import CpuThread
from ottla.security.sasl.mechanism import MECHANISMS, OAUTHBEARER

logger = logging.getLogger("ottla.websocket.json")

MAX_SUBSCRIPTIONS: Final = 100
MAX_PARTITIONS: Final = 1_000
"""Of one topic that a page may subscribe to."""
MAX_PERMITS: Final = 1_000_000
MAX_WAITING: Final = 100
MAX_WAITING_BYTES: Final = 256 << 10
"""Commands; with more, nothing is read until all have been carried out."""
MAX_KEY_BYTES: Final = 64 << 10
"""Of a subscription, which keeps it."""
FETCH_BYTES: Final = 1 << 20
FETCH_WAIT_MS: Final = 500
PARTITION_BYTES: Final = 256 << 10
PRODUCE_WITHIN_MS: Final = 30_000
END_AFTER_MS: Final = 50
PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
VERSIONS: Final = {PRODUCE: 9, FETCH: 11, LIST_OFFSETS: 5, METADATA: 9, SASL_AUTHENTICATE: 2}
READ_COMMITTED: Final = 1
_TIMES: Final = {"latest": -1, "earliest": -2}


class Page(Outside, Protocol):
    """The WebSocket of a page."""

    def send_text(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class RequestRefusedError(Exception):
    """An error of Kafka, for the page."""

    def __init__(self, code: ErrorCode, message: str = "", **more: Any) -> None:
        super().__init__(message or code.name)
        self.code, self.message, self.more = code, message, more


class JsonSession:
    """Of one page. For the event loop's thread only."""

    def __init__(
        self,
        page: Page,
        *,
        broker_id: int,
        needs_login: bool,
        now_ms: Callable[[], int],
        cpu_thread: CpuThread,
    ) -> None:
        """`cpu_thread` reads messages of many elements."""
        self._cpu_thread = cpu_thread
        self._page = page
        self._broker_id = broker_id
        self._needs_login = needs_login
        self._now_ms = now_ms
        self.pipe = JsonPipe(page, self._connection_ended)
        self._commands: deque[dict[str, Any] | bytes] = deque()
        """As bytes those that are read when it is their turn."""
        self._is_due = asyncio.Event()
        """There are commands."""
        self._waiting_bytes = 0
        """Of the texts that were commands since there were none."""
        self._may_fetch = asyncio.Event()
        """A subscription has permits."""
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._may_ask = asyncio.Event()
        """No login is under way: a fetch between its requests would end the connection."""
        self._may_ask.set()
        self._subscriptions: dict[Any, Subscription] = {}
        self._next_partition = 0
        self._tasks = Background(logger, "a page's session")

    def connect(self, inside: FrameProtocol) -> None:
        """`inside` is the protocol of a connection."""
        self.pipe.connect(inside)
        self._tasks.keep(self._carry_out)
        self._tasks.keep(self._fetch)

    def connection_lost(self, error: Exception | None) -> None:
        self._tasks.cancel()
        self._subscriptions.clear()
        self._commands.clear()
        self.pipe.lost(error)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def received_text(self, text: bytes) -> None:
        """One message of the page."""
        if is_long(text):
            self._keep(text, len(text))
            return
        message = read_message(text)
        if message is None:
            self._say_not_read()
        elif message.get("type") == "permit":
            self._permit(message)
        else:
            self._keep(message, len(text))

    def _keep(self, message: dict[str, Any] | bytes, size_bytes: int) -> None:
        self._commands.append(message)
        self._waiting_bytes += size_bytes
        if len(self._commands) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES:
            self._page.pause_reading(True)
        self._is_due.set()

    def _say_not_read(self) -> None:
        self._say_error(None, "INVALID_REQUEST", "not an object of JSON with a type and an id")

    def _connection_ended(self) -> None:
        # After what the page must still hear of it has been said.
        asyncio.get_running_loop().call_later(END_AFTER_MS / 1000, self._page.close)

    def _say(self, kind: str, number: Any, **fields: Any) -> None:
        named = {"type": kind} | ({} if number is None else {"id": number})
        self._page.send_text(json.dumps(named | fields, separators=(",", ":")).encode())

    def _say_error(self, number: Any, code: str, message: str, **more: Any) -> None:
        self._say("error", number, error=code, message=message, **more)

    async def _carry_out(self) -> None:
        kinds = {
            "login": self._log_in,
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "produce": self._produce,
        }
        while True:
            await self._is_due.wait()
            await self._may_write.wait()
            message = self._commands.popleft()
            if not self._commands:
                self._waiting_bytes = 0
                self._is_due.clear()
                self._page.pause_reading(False)
            if isinstance(message, bytes):
                found = await self._cpu_thread.run(partial(read_message, message, slowly=True))
                if found is None:
                    self._say_not_read()
                    continue
                message = found
                if message.get("type") == "permit":
                    self._permit(message)
                    continue
            number, kind = message.get("id"), message.get("type")
            try:
                if not isinstance(kind, str) or kind not in kinds:
                    raise MessageError(f"type must be one of {', '.join(kinds)}, permit")
                if self._needs_login and kind != "login":
                    raise MessageError("log in first")
                await kinds[kind](number, message)
            except MessageError as error:
                self._say_error(number, "INVALID_REQUEST", str(error))
            except RequestRefusedError as error:
                self._say_error(number, error.code.name.upper(), error.message, **error.more)
            except DecodeError:
                self._say_error(number, "UNKNOWN_SERVER_ERROR", "")
            except PipeClosedError:
                self._say_error(number, "NETWORK_EXCEPTION", "the broker ends the connection")

    def _build(self, key: int) -> Any:
        return messages_of(key, VERSIONS[key], "request")

    async def _log_in(self, number: Any, message: Mapping[str, Any]) -> None:
        mechanism = message.get("mechanism")
        if mechanism not in MECHANISMS:
            raise MessageError(f"mechanism must be one of {', '.join(MECHANISMS)}")
        self._may_ask.clear()
        try:
            if mechanism == OAUTHBEARER:
                lifetime_ms = await self._show_token(_text(message, "token"))
            else:
                login = Login(mechanism, _text(message, "username"), _text(message, "password"))
                lifetime_ms = await log_in(login, self.pipe.ask)
        except SaslError as error:
            raise RequestRefusedError(ErrorCode.sasl_authentication_failed, str(error)) from None
        finally:
            self._may_ask.set()
        self._needs_login = False
        self._say("welcome", number, lifetimeMs=lifetime_ms)

    async def _show_token(self, token: str) -> int:
        """The session's lifetime in ms. Raises SaslError."""
        build = messages_of(SASL_HANDSHAKE, 1, "request")
        response = await self.pipe.ask(build.SaslHandshakeRequest(mechanism=OAUTHBEARER))
        if response.error_code is not ErrorCode.none:
            raise SaslError(f"offered are {', '.join(response.mechanisms)}")
        build = self._build(SASL_AUTHENTICATE)
        first = f"n,,\x01auth=Bearer {token}\x01\x01".encode(errors="replace")
        for sent in (first, b"\x01"):
            response = await self.pipe.ask(build.SaslAuthenticateRequest(auth_bytes=sent))
            if response.error_code is not ErrorCode.none:
                raise SaslError(response.error_message or "")
            if not response.auth_bytes:
                break
        return int(response.session_lifetime)

    async def _partitions(
        self, topic: str, *, may_create: bool
    ) -> tuple[list[int], int, list[Any]]:
        """Those that this broker leads, how many there are, and where the others are."""
        build = self._build(METADATA)
        asked = build.MetadataRequest(
            topics=(build.MetadataRequestTopic(name=topic),), allow_auto_topic_creation=may_create
        )
        response = await self.pipe.ask(asked)
        found = response.topics[0]
        if found.error_code is not ErrorCode.none:
            raise RequestRefusedError(found.error_code)
        brokers = {each.node_id: each for each in response.brokers}
        here: list[int] = []
        elsewhere: list[Any] = []
        for each in sorted(found.partitions, key=lambda each: each.partition_index):
            if each.leader_id == self._broker_id:
                here.append(each.partition_index)
            else:
                leader = brokers.get(each.leader_id)
                address = {} if leader is None else {"host": leader.host, "port": leader.port}
                elsewhere.append({"partition": each.partition_index} | address)
        return here, len(found.partitions), elsewhere

    async def _subscribe(self, number: Any, message: Mapping[str, Any]) -> None:
        topic = _text(message, "topic")
        key = bytes_in(message.get("key"), "key")
        if key is not None and len(key) > MAX_KEY_BYTES:
            raise MessageError(f"key must not have more than {MAX_KEY_BYTES} bytes")
        permits = _count(message, "permits")
        if number in self._subscriptions or len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise MessageError(f"one of at most {MAX_SUBSCRIPTIONS} subscriptions, each with an id")
        here, count, elsewhere = await self._partitions(topic, may_create=False)
        if count > MAX_PARTITIONS:
            raise MessageError(f"the topic has more than {MAX_PARTITIONS} partitions")
        subscription = Subscription(topic, key, permits)
        subscription.offsets = await self._begin(topic, here, message.get("from", "latest"))
        self._subscriptions[number] = subscription
        offsets = [
            {"partition": each, "offset": offset} for each, offset in subscription.offsets.items()
        ]
        more = {"elsewhere": elsewhere} if elsewhere else {}
        self._say("subscribed", number, topic=topic, partitions=offsets, **more)
        self._may_fetch.set()

    async def _begin(self, topic: str, here: list[int], begin: Any) -> dict[int, int]:
        """The first offset of each partition."""
        if isinstance(begin, dict) and _is_count(begin.get("offset")):
            return {each: int(begin["offset"]) for each in here}
        time_ms = _TIMES.get(begin) if isinstance(begin, str) else None
        if isinstance(begin, dict) and _is_count(begin.get("time")):
            time_ms = begin["time"]
        if time_ms is None:
            raise MessageError('from must be "latest", "earliest", {"offset": n} or {"time": ms}')
        offsets = await self._offsets_at(topic, here, time_ms)
        later = [each for each, offset in offsets.items() if offset < 0]
        # No record is as late.
        return offsets | (await self._offsets_at(topic, later, -1) if later else {})

    async def _offsets_at(self, topic: str, here: list[int], time_ms: int) -> dict[int, int]:
        build = self._build(LIST_OFFSETS)
        partitions = tuple(
            build.ListOffsetsPartition(
                partition_index=each, current_leader_epoch=-1, timestamp=time_ms
            )
            for each in here
        )
        topics = (build.ListOffsetsTopic(name=topic, partitions=partitions),)
        response = await self.pipe.ask(
            build.ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=topics)
        )
        offsets: dict[int, int] = {}
        for each in (each for topic in response.topics for each in topic.partitions):
            if each.error_code is not ErrorCode.none:
                raise RequestRefusedError(each.error_code)
            offsets[each.partition_index] = each.offset
        return offsets

    async def _unsubscribe(self, number: Any, message: Mapping[str, Any]) -> None:
        if self._subscriptions.pop(number, None) is None:
            raise MessageError("no such subscription")
        self._say("unsubscribed", number)

    def _permit(self, message: Mapping[str, Any]) -> None:
        number = message.get("id")
        subscription = self._subscriptions.get(number)
        try:
            if subscription is None:
                raise MessageError("no such subscription")
            more = _count(message, "count")
            subscription.permits = min(subscription.permits + more, MAX_PERMITS)
        except MessageError as error:
            self._say_error(number, "INVALID_REQUEST", str(error))
        self._may_fetch.set()

    async def _produce(self, number: Any, message: Mapping[str, Any]) -> None:
        topic = _text(message, "topic")
        record = record_in(message, self._now_ms())
        partition = message.get("partition")
        if partition is not None and not _is_count(partition):
            raise MessageError("partition must be a number, or left out")
        here, count, elsewhere = await self._partitions(topic, may_create=True)
        if partition is None and record.key is not None:
            partition = partition_of_key(record.key, count)
        elif partition is None and here:
            self._next_partition += 1
            partition = here[self._next_partition % len(here)]
        if partition not in here:
            none: dict[str, Any] = {}
            address = next((each for each in elsewhere if each["partition"] == partition), none)
            raise RequestRefusedError(ErrorCode.not_leader_or_follower, "", **address)
        build = self._build(PRODUCE)
        data = build.PartitionProduceData(index=partition, records=build_batch([record]))
        topics = (build.TopicProduceData(name=topic, partition_data=(data,)),)
        response = await self.pipe.ask(
            build.ProduceRequest(acks=-1, timeout=PRODUCE_WITHIN_MS, topic_data=topics)
        )
        (answer,) = response.responses[0].partition_responses
        if answer.error_code is not ErrorCode.none:
            raise RequestRefusedError(answer.error_code, answer.error_message or "")
        self._say("produced", number, topic=topic, partition=partition, offset=answer.base_offset)

    async def _fetch(self) -> None:
        """Reads for all subscriptions that have permits."""
        while True:
            await self._may_write.wait()
            wanted = {
                number: each
                for number, each in self._subscriptions.items()
                if each.permits > 0 and each.offsets
            }
            if not wanted:
                self._may_fetch.clear()
                await self._may_fetch.wait()
                continue
            number = next(iter(wanted))
            # In turn: two subscriptions may be to one topic, which a fetch names once.
            subscription = self._subscriptions.pop(number)
            self._subscriptions[number] = subscription
            wait_ms = FETCH_WAIT_MS if len(wanted) == 1 else 0
            await self._may_ask.wait()
            try:
                await self._read(number, subscription, wait_ms)
            except (PipeClosedError, DecodeError):
                return

    async def _read(self, number: Any, subscription: Subscription, wait_ms: int) -> None:
        build = self._build(FETCH)
        # Each partition comes first in turn, as a fetch has room for a few.
        first = next(iter(subscription.offsets))
        subscription.offsets[first] = subscription.offsets.pop(first)
        partitions = tuple(
            build.FetchPartition(
                partition=each, current_leader_epoch=-1, fetch_offset=offset,
                log_start_offset=-1, partition_max_bytes=PARTITION_BYTES,
            )
            for each, offset in subscription.offsets.items()
        )  # fmt: skip
        response = await self.pipe.ask(
            build.FetchRequest(
                replica_id=-1, max_wait=wait_ms, min_bytes=1, max_bytes=FETCH_BYTES,
                isolation_level=READ_COMMITTED, session_id=0, session_epoch=-1, rack_id="",
                topics=(build.FetchTopic(topic=subscription.topic, partitions=partitions),),
                forgotten_topics_data=(),
            )
        )  # fmt: skip
        got = False
        for each in (each for topic in response.responses for each in topic.partitions):
            partition = each.partition_index
            if each.error_code is not ErrorCode.none:
                subscription.offsets.pop(partition, None)
                self._say_error(number, each.error_code.name.upper(), "", partition=partition)
                continue
            try:
                async for record in subscription.records_in(partition, each):
                    if self._subscriptions.get(number) is not subscription:
                        return
                    got = True
                    fields = {"topic": subscription.topic, "partition": partition}
                    self._say("record", number, **fields, **object_of(record))
                    await self._may_write.wait()
            except (InvalidRecordError, CorruptBatchError) as error:
                self._say_error(number, "CORRUPT_MESSAGE", str(error), partition=partition)
        if not got and not wait_ms:
            await asyncio.sleep(FETCH_WAIT_MS / 1000 / 10)


def _text(message: Mapping[str, Any], name: str) -> str:
    """Raises MessageError."""
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise MessageError(f"{name} must be a text")
    with suppress(UnicodeEncodeError):
        value.encode()
        return value
    raise MessageError(f"{name} must be a text of Unicode")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _count(message: Mapping[str, Any], name: str) -> int:
    """Raises MessageError."""
    value = message.get(name, 0)
    if not _is_count(value) or value > MAX_PERMITS:
        raise MessageError(f"{name} must be a number up to {MAX_PERMITS}")
    return int(value)
