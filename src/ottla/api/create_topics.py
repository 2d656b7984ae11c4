"""CreateTopics (key 19): creates topics, or checks whether it could (validate only).

v2: the first version; v4: -1 for the broker's default partitions and replicas (KIP-464). v5:
flexible, with the new topic's settings in the response (KIP-525). v6:
THROTTLING_QUOTA_EXCEEDED (KIP-599). v7: with its id (KIP-516).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.mutation_quota import MutationQuota
from ottla.api.time_limit import check_in_time
from ottla.controller.config_entries import topic_entries
from ottla.controller.image import TopicImage
from ottla.controller.topics import NewTopic, TopicResult, all_refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError
from ottla.runtime.slices import Slices

KEY: Final = 19
ACCESS: Final = (Access(Operation.CREATE, Resource.TOPIC),)


async def handle(request: Any, context: Context) -> Any:
    slices, quota = Slices(), MutationQuota(context, strict_since=6)
    wanted: list[NewTopic] = []
    for topic in request.topics:
        await slices.count(1 + len(topic.assignments) + len(topic.configs))
        wanted.append(_wanted(topic))
    results: Iterable[TopicResult | None]
    try:
        check_in_time(request.timeout)
        results = await context.broker.controller.create_topics(
            wanted, validate_only=request.validate_only, charge=quota.charge
        )
    except ApiError as error:
        results = all_refused(wanted, error)
    answers, known = [], _Settings(context)
    for result in results:
        await slices.count()
        if result is not None:
            answers.append(_answer(result, request.validate_only, known, context))
    return quota.after(context.messages.CreateTopicsResponse(topics=tuple(answers)))


def _wanted(topic: Any) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        factor=topic.replication_factor,
        assignments=tuple(
            (each.partition_index, tuple(each.broker_ids)) for each in topic.assignments
        ),
        configs=tuple((config.name, config.value) for config in topic.configs),
    )


class _Settings:
    """The settings of topics with the same overrides: one request seldom has different ones."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers: dict[frozenset[tuple[str, str]], tuple[Any, ...]] = {}

    def of(self, topic: TopicImage) -> tuple[Any, ...]:
        key = frozenset(topic.overrides.items())
        found = self._answers.get(key)
        if found is None:
            entries = topic_entries(topic.overrides, self._context.broker.config)
            found = self._answers[key] = tuple(
                self._context.messages.CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                )
                for entry in sorted(entries, key=lambda each: each.name)
            )
        return found


def _answer(result: TopicResult, validate_only: bool, settings: _Settings, context: Context) -> Any:
    build, topic = context.messages, result.topic
    if topic is None:
        return build.CreatableTopicResult(
            name=result.name,
            error_code=result.outcome.code,
            error_message=result.outcome.message,
            num_partitions=-1,
            replication_factor=-1,
            configs=(),
        )
    return build.CreatableTopicResult(
        name=result.name,
        topic_id=None if validate_only else topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=settings.of(topic) if context.version >= 5 else (),
    )
