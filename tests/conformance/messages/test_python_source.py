"""What the definitions of Apache Kafka's jar become, beside kio's classes of the same versions."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from conformance.messages.definitions import Definition, range_of, read
from conformance.messages.python_source import source_of

from components import fixture
from ottla.protocol import newer
from ottla.protocol.codec import codec_of, decode, encode

kafka_jars = fixture.kafka_jars

OF_KIO = (
    (18, "api_versions", 4),
    (18, "api_versions", 0),
    (28, "txn_offset_commit", 2),
    (42, "delete_groups", 2),
    (1, "fetch", 17),
    (3, "metadata", 13),
    (36, "sasl_authenticate", 2),
    (68, "consumer_group_heartbeat", 1),
    (78, "share_fetch", 2),
    (89, "streams_group_describe", 0),
)


def shape_of(cls: type) -> list[Any]:
    """What the codec makes of a class."""
    return [
        (field.name, field.tag, repr(field.default), field.shape, field.code, field.null_allowed)
        for field in codec_of(cls).fields
    ]


def module_of(definition: Definition, version: int) -> ModuleType:
    module = ModuleType("made")
    exec(compile(source_of(definition, version), "made", "exec", dont_inherit=True), vars(module))
    return module


@pytest.mark.parametrize(("key", "name", "version"), OF_KIO)
@pytest.mark.parametrize("kind", ["request", "response"])
def test_the_classes_are_those_of_kio(
    kafka_jars: KafkaJars, key: int, name: str, version: int, kind: str
) -> None:
    theirs = import_module(f"kio.schema.{name}.v{version}.{kind}")
    ours = module_of(read(kafka_jars)[key, kind], version)
    structs = [each for each in vars(theirs).values() if hasattr(each, "__api_key__")]
    assert structs
    for cls in structs:
        made = getattr(ours, cls.__name__)
        assert shape_of(made) == shape_of(cls)
        for attribute in ("__type__", "__version__", "__flexible__", "__api_key__"):
            assert getattr(made, attribute) == getattr(cls, attribute)


@pytest.mark.parametrize("version", range(6))
def test_a_message_of_an_old_version_has_no_newer_field(
    kafka_jars: KafkaJars, version: int
) -> None:
    module = module_of(read(kafka_jars)[18, "request"], version)
    fields = codec_of(module.ApiVersionsRequest).defaults
    assert ("client_software_name" in fields) == (version >= 3)
    assert ("cluster_id" in fields) == (version >= 5)
    made: Any = module.ApiVersionsRequest
    message = made(
        **{name: value or "x" if name.endswith("e") else value for name, value in fields.items()}
    )
    encoded = b"".join(bytes(part) for part in encode(message).parts())
    assert repr(decode(made, encoded)[0]) == repr(message)


def test_the_folder_holds_what_the_definitions_say(kafka_jars: KafkaJars) -> None:
    """`python -m conformance.messages --write` writes it again."""
    from conformance.messages.__main__ import newer_modules

    made = newer_modules(kafka_jars)
    assert len(made) == 2 * sum(map(len, newer.VERSIONS.values()))
    for name, source in made.items():
        path = Path(newer.__file__).parent / f"{name}.py"
        assert path.read_text() == source


def test_kio_does_not_have_them_yet() -> None:
    """Else they go."""
    for name, versions in newer.VERSIONS.items():
        for version in versions:
            with pytest.raises(ModuleNotFoundError):
                import_module(f"kio.schema.{name}.v{version}")


def test_ranges() -> None:
    assert range_of("none") == range(0)
    assert range_of("3") == range(3, 4)
    assert range_of("0-5") == range(6)
    assert 32_000 in range_of("3+")
    assert 2 not in range_of("3+")
