"""Protobuf data with a registry's schema as JSON and back, for `--registry URL`.

JSON is Protobuf's own mapping, with the names of the fields as the schema has them: integers of 64
bits are text, and bytes are base64. In a schema with several messages `@type` names the message of
a record. Message classes come from the registry's schema; nothing is generated.

https://protobuf.dev/programming-guides/json/
"""

from __future__ import annotations

from typing import Any, Final

from ottla.registry.framing import HEAD_BYTES, head
from ottla.registry.protobuf_framing import read_indexes, write_indexes
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import Registered, SchemaError

TYPE: Final = "@type"


class ProtobufError(Exception):
    """A schema that cannot be used, or data that is not of its schema; one line without a stop."""


def messages_of(schema: Registered) -> Messages:
    """Return the messages of a schema. Raises ProtobufError."""
    try:
        return Messages(schema)
    except SchemaError as error:
        raise ProtobufError(str(error).rstrip(".")) from error


def decoded(messages: Messages, data: bytes) -> Any:
    """Return framed data as JSON has it. Raises ProtobufError for data of another schema."""
    from google.protobuf.json_format import Error, MessageToDict
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    try:
        indexes, start = read_indexes(data, HEAD_BYTES)
    except ValueError as error:
        raise ProtobufError(f"its message indexes cannot be read: {error}") from None
    if indexes not in messages.by_index:
        raise ProtobufError(f"the schema has no message with the indexes {list(indexes)}")
    descriptor = messages.by_index[indexes]
    name = descriptor.full_name
    try:
        message = GetMessageClass(descriptor).FromString(data[start:])
        found = MessageToDict(
            message,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
            descriptor_pool=messages.pool,
        )
    except (DecodeError, Error) as error:
        # JSON has no place for some values, such as a time of the year 20000.
        words = " ".join(str(error).split()).rstrip(".")
        raise ProtobufError(f"it is not Protobuf data of {name}: {words}") from None
    if name != messages.main() and isinstance(found, dict):
        return {TYPE: name, **found}
    return found


def encoded(messages: Messages, value: Any) -> bytes:
    """Return JSON as framed data. Raises ProtobufError for what the schema does not describe."""
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message import EncodeError
    from google.protobuf.message_factory import GetMessageClass

    name = value.get(TYPE) if isinstance(value, dict) else None
    if name is None:
        name = messages.main()
        if name is None:
            one = messages.roots()[0]
            raise ProtobufError(
                f"the schema has the messages {', '.join(messages.roots())}: name the one to "
                f'write, {{"{TYPE}": "{one}", ...}}'
            )
    else:
        value = {field: one for field, one in value.items() if field != TYPE}
    if name not in messages.by_name:
        raise ProtobufError(
            f"the schema has no message {name}: it has {', '.join(messages.by_name)}"
        )
    message = GetMessageClass(messages.by_name[name])()
    try:
        ParseDict(value, message, descriptor_pool=messages.pool)
        data: bytes = message.SerializeToString()
    except (ParseError, EncodeError, TypeError, ValueError, AttributeError) as error:
        # json_format asks values of other JSON types than it expects for their fields.
        raise ProtobufError(" ".join(str(error).split()).rstrip(".")) from None
    return head(messages.schema.id) + write_indexes(messages.indexes_of(name)) + data
