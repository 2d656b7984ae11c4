"""Records of share groups, for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.groups.consumer.records import int32, int64, maybe, names, partition, targets, texts

from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)
from ottla.groups.share.stored import (
    CurrentValue,
    GroupValue,
    MemberValue,
    ShareRecord,
    StatesKey,
    StatesValue,
    StateTopic,
    TargetValue,
)

state_topics = st.dictionaries(
    st.uuids(),
    st.builds(StateTopic, texts, st.frozensets(partition, max_size=4)),
    max_size=3,
)
records = st.one_of(
    st.builds(ShareRecord, st.builds(GroupKey, texts), st.builds(GroupValue, int32, int64)),
    st.builds(
        ShareRecord,
        st.builds(MemberKey, texts, texts),
        st.builds(MemberValue, maybe, texts, texts, names),
    ),
    st.builds(
        ShareRecord, st.builds(TargetEpochKey, texts), st.builds(TargetEpochValue, int32, int64)
    ),
    st.builds(ShareRecord, st.builds(TargetKey, texts, texts), st.builds(TargetValue, targets)),
    st.builds(
        ShareRecord,
        st.builds(CurrentKey, texts, texts),
        st.builds(CurrentValue, int32, int32, st.integers(-128, 127), targets),
    ),
    st.builds(
        ShareRecord,
        st.builds(StatesKey, texts),
        st.builds(
            StatesValue,
            state_topics,
            state_topics,
            st.dictionaries(st.uuids(), texts, max_size=3),
        ),
    ),
)
