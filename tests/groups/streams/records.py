"""Records of streams groups, for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.groups.consumer.records import int32, int64, maybe, partition, texts

from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)
from ottla.groups.streams.member import Endpoint
from ottla.groups.streams.stored import (
    CurrentValue,
    GroupValue,
    MemberValue,
    StreamsRecord,
    TargetValue,
    TopologyKey,
    TopologyValue,
)
from ottla.groups.streams.tasks import HeldTasks, Tasks
from ottla.groups.streams.topology import CopartitionGroup, Subtopology, TopicInfo, Topology

int16 = st.integers(-(2**15), 2**15 - 1)
pairs = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
names = st.lists(texts, max_size=3).map(tuple)
partitions = st.dictionaries(texts, st.frozensets(partition, max_size=4), max_size=3)
assigned = st.dictionaries(texts, st.dictionaries(partition, int32, max_size=4), max_size=3)
tasks = st.builds(Tasks, partitions, partitions, partitions)
held = st.builds(HeldTasks, assigned, partitions, partitions)
endpoints = st.none() | st.builds(Endpoint, texts, st.integers(0, 65_535))
infos = st.lists(st.builds(TopicInfo, texts, int32, int16, pairs), max_size=2).map(tuple)
positions = st.lists(int16, max_size=3).map(tuple)
copartition_groups = st.lists(
    st.builds(CopartitionGroup, positions, positions, positions), max_size=2
).map(tuple)
subtopologies = st.lists(
    st.builds(Subtopology, texts, names, names, infos, names, infos, copartition_groups),
    max_size=3,
    unique_by=lambda each: each.id,
).map(lambda found: tuple(sorted(found)))
records = st.one_of(
    st.builds(
        StreamsRecord,
        st.builds(GroupKey, texts),
        st.builds(GroupValue, int32, int64, int32, st.none() | pairs, int32, int32),
    ),
    st.builds(
        StreamsRecord,
        st.builds(MemberKey, texts, texts),
        st.builds(MemberValue, maybe, maybe, texts, texts, int32, int32, texts, endpoints, pairs),
    ),
    st.builds(
        StreamsRecord, st.builds(TargetEpochKey, texts), st.builds(TargetEpochValue, int32, int64)
    ),
    st.builds(StreamsRecord, st.builds(TargetKey, texts, texts), st.builds(TargetValue, tasks)),
    st.builds(
        StreamsRecord,
        st.builds(CurrentKey, texts, texts),
        st.builds(CurrentValue, int32, int32, st.integers(-128, 127), held, held),
    ),
    st.builds(
        StreamsRecord,
        st.builds(TopologyKey, texts),
        st.builds(
            TopologyValue, st.builds(Topology, int32, subtopologies), st.none() | st.binary()
        ),
    ),
)
