"""Records of consumer groups, for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from ottla.groups.consumer.member import ClassicMetadata
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    CurrentValue,
    GroupValue,
    MemberValue,
    RegexKey,
    RegexValue,
    TargetValue,
)
from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)

texts = st.text(max_size=20).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
names = st.lists(texts, max_size=4, unique=True).map(lambda each: tuple(sorted(each)))
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
partition = st.integers(0, 2**31 - 1)
targets = st.dictionaries(st.uuids(), st.frozensets(partition, min_size=1, max_size=4), max_size=4)
owned = st.dictionaries(
    st.uuids(),
    st.dictionaries(partition, st.integers(0, 2**31 - 1), min_size=1, max_size=4),
    max_size=4,
)
classic = st.builds(
    ClassicMetadata,
    int32,
    st.lists(st.tuples(texts, st.binary(max_size=30)), max_size=3).map(tuple),
)
maybe = st.none() | texts
member_values = st.builds(
    MemberValue, maybe, maybe, texts, texts, names, maybe, int32, maybe, st.none() | classic
)
current_values = st.builds(CurrentValue, int32, int32, st.integers(-128, 127), owned, owned)
records = st.one_of(
    st.builds(ConsumerRecord, st.builds(GroupKey, texts), st.builds(GroupValue, int32, int64)),
    st.builds(ConsumerRecord, st.builds(MemberKey, texts, texts), member_values),
    st.builds(
        ConsumerRecord, st.builds(TargetEpochKey, texts), st.builds(TargetEpochValue, int32, int64)
    ),
    st.builds(ConsumerRecord, st.builds(TargetKey, texts, texts), st.builds(TargetValue, targets)),
    st.builds(ConsumerRecord, st.builds(CurrentKey, texts, texts), current_values),
    st.builds(
        ConsumerRecord,
        st.builds(RegexKey, texts, texts),
        st.builds(RegexValue, names, int64, int64),
    ),
)
