"""When each number passed an offset, from a partition's steps: a time, or bounds; never a guess.
Pure.

The steps are ordered as `TimelineFolder.read` returns them: by segment, and within each file in the
order written.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

from ottla.timelines.delivery_metadata import read_delivery
from ottla.timelines.destination import Destination, destination_of
from ottla.timelines.step import COPIED, OTHERS, Clients, Kind, Opening, Pipeline, Removal, Step

_ENDS = (Kind.END, Kind.END_AND_HIGH)
_HIGHS = (Kind.HIGH, Kind.END_AND_HIGH)
MAX_SKEW_MS: Final = 1000
"""By how much another broker's clock is taken to differ, at most, when its times are compared."""


class When(NamedTuple):
    """A time in ms since 1970, as exactly as it is known: both the same, bounds, or None for an
    unknown side.
    """

    since_ms: int | None
    until_ms: int | None

    @property
    def is_exact(self) -> bool:
        return self.since_ms is not None and self.since_ms == self.until_ms


class Appended(NamedTuple):
    """When the log end passed the offset, and the client (several: one of them; empty: unknown).
    `is_plain`: it was of no transaction (false: not known).
    """

    when: When
    clients: Clients
    is_plain: bool = False

    @property
    def was_copied(self) -> bool | None:
        """Whether this broker copied it from its leader; None if that is unknown."""
        if COPIED in self.clients:
            return True if len(self.clients) == 1 else None
        # Earlier versions noted a client without a name for what a follower copied.
        return None if self.clients in ((), ((-1, ""),)) else False


class Written(NamedTuple):
    """When this broker's log got the record, and whether this broker assigned the offset. If not,
    the leader of that time had it earlier.

    `rewritten_ms`: when this broker last learned
    that another record had the offset before; None: it has not. `opened_ms`: when it last opened
    its log and did not have the record yet. `end_offset`: where the log ends; who is past it came
    there by another log.
    """

    when: When
    is_own: bool
    rewritten_ms: int | None = None
    opened_ms: int | None = None
    unclean_ms: int | None = None
    """When the record may have come back with an election that was not clean."""
    end_offset: int = 2**63 - 1
    broker: int = -1
    """This broker."""
    twice: tuple[int, int] | None = None
    """From the smallest to the largest time that a clock had twice; times in between do not tell
    what came first. None: no clock was set back.
    """
    always_led: bool = False
    """This broker led from the partition's first record on, so its own steps pass no offset that
    was not written.
    """
    openings: tuple[tuple[int, int], ...] = ()
    """When this broker opened its log, and where that ended then."""

    def is_told(self, step: Step) -> bool:
        """Whether another broker recorded the step."""
        return step.broker not in (-1, self.broker)

    def may_precede(self, last: Step) -> bool:
        """Whether who came past the offset with this last commit may have had another record."""
        if last.last > self.end_offset or self.is_unordered(last) or self.is_after(last):
            return True
        # It may have come after the commit, whose step is lost.
        since_ms, until_ms = self.when
        return since_ms is not None if until_ms is None else last.until_ms < until_ms

    def may_follow(self, since_ms: int | None, step: Step) -> bool:
        """Whether who came past the offset between that time and this step, by a step that is
        lost, may have done so before the record was written.
        """
        if self.is_unordered(step):
            return True
        least_ms, until_ms = self.when
        if until_ms is None:
            return least_ms is not None
        return since_ms is None or since_ms < until_ms

    def is_unordered(self, step: Step) -> bool:
        """Whether a clock was set back so that it is not known which came first, step or record."""
        if self.twice is None:
            return False
        skew_ms = MAX_SKEW_MS if self.is_told(step) else 0
        first_ms, last_ms = self.twice[0] - skew_ms, self.twice[1] + skew_ms
        since_ms, until_ms = self.when
        is_step_out = step.until_ms < first_ms or step.since_ms > last_ms
        is_before = until_ms is not None and until_ms < first_ms
        is_later = since_ms is not None and since_ms > last_ms
        return not (is_step_out or is_before or is_later)

    def is_after(self, step: Step) -> bool:
        """Whether the step ended before this broker had the record, or may have."""
        if self.twice is not None and (self.rewritten_ms or self.unclean_ms) is not None:
            return True
        if self.is_unordered(step):
            # It is after the record only if it could not pass what was not written yet.
            return self.is_told(step) or not self.always_led
        least_ms, skew_ms = self.when.since_ms, MAX_SKEW_MS if self.is_told(step) else 0
        doubtful_ms = [self.unclean_ms]
        if skew_ms:
            # What was passed before the log was opened without it may be lost.
            doubtful_ms.append(self.opened_ms)
        if self.rewritten_ms is not None and (skew_ms or least_ms is None or not self.is_own):
            is_bounded = self.is_own and least_ms is not None
            doubtful_ms.append(least_ms if is_bounded else self.rewritten_ms)
        if any(ms is not None and step.since_ms <= ms + skew_ms for ms in doubtful_ms):
            return True
        if least_ms is not None and step.until_ms + skew_ms < least_ms:
            return True
        # Where only one bound of the record's time is known, it may have come after the step.
        may_be_ahead = bool(skew_ms) or not self.always_led
        until_ms = self.when.until_ms
        if until_ms is None:
            return may_be_ahead and least_ms is not None
        return may_be_ahead and least_ms is None and step.until_ms < until_ms

    def is_ahead(self, step: Step) -> bool:
        """Whether the step ended before the record was written, if clocks do not differ by more
        than is allowed for.
        """
        least_ms = self.when.since_ms
        if least_ms is None or not self.is_own or self.is_unordered(step):
            return False
        return step.until_ms + (MAX_SKEW_MS if self.is_told(step) else 0) < least_ms

    def is_surely_after(self, step: Step) -> bool:
        """Whether the step certainly ended before any broker had the record."""
        least_ms = self.when.since_ms
        if least_ms is None or not self.is_own or self.is_told(step) or self.is_unordered(step):
            return False
        return step.until_ms < least_ms

    def bounded(self, when: When, step: Step) -> When:
        """A moment of this step after the record was written."""
        least_ms = self.when.since_ms
        if not self.is_own or least_ms is None or self.is_told(step) or self.is_unordered(step):
            return when
        if when.until_ms is not None and when.until_ms < least_ms:
            return when
        return When(max(when.since_ms or least_ms, least_ms), when.until_ms)


UNWRITTEN: Final = Written(When(None, None), False)
"""Nothing is known of when it was written."""


class Delivered(NamedTuple):
    """A pipeline delivered the offset in one of the versions (batches) from first to last; -1: the
    destination has no versions.

    `span`: the first offset that the delivery can have had, and the one after its last. `has_gap`:
    a delivery whose step is lost may have had the offset. `may_have_rejects`: some offsets of the
    delivery were rejected, or of the pipeline's other deliveries where there is a gap. `is_before`:
    the commit came before this broker had the record, and none came since. Another record may have
    had the offset, which was truncated. Or it was delivered by one of two checkpoints, of which it
    is not known how many batches the first one had; or the log lost its end since, in a crash that
    took the delivery's step, too. `is_last_commit`: only the pipeline's last
    commit is known.
    """

    pipeline: Pipeline
    when: When
    first_version: int
    last_version: int
    first_batch: int
    last_batch: int
    is_first_seen: bool
    span: tuple[int, int] = (0, 0)
    has_gap: bool = False
    may_have_rejects: bool = False
    is_before: bool = False
    is_last_commit: bool = False
    reads_committed: bool = False


class Removed(NamedTuple):
    """The log start passed the offset; reason "" if the step is lost, or a follower's: its leader
    knows the reason, and removed it earlier.
    """

    when: When
    reason: str


def appended(steps: Iterable[Step], offset: int, opening: Opening | None) -> Appended:
    """When the offset was appended, and by which client."""
    low: int | None = None
    high: int | None = None
    found: Step | None = None
    some = list(steps)
    # Then steps have no certain order, but each is of the log end and grows it.
    was_set_back = any(step.kind is Kind.CLOCK and step.broker == -1 for step in some)
    for step in _of_the_end(some):
        if was_set_back and found is not None and step.kind in _ENDS:
            continue
        if step.last <= offset:
            # The log ended before the offset at that time, so the record was appended later.
            low, high, found = step.until_ms, None, None
        elif step.kind in _ENDS and step.before <= offset:
            found = step
        elif high is None:
            high = step.since_ms
    if found is not None:
        # Of several records that had the offset, the first one may not be the last one.
        is_plain = found.is_plain and not was_set_back
        return Appended(_within(found, offset), cast(Clients, found.name), is_plain)
    # What was found at the opening is another record if the log ended before the offset later.
    if opening is not None and (low is None or low <= opening.opened_ms):
        if offset < opening.end_offset:
            high = opening.opened_ms if high is None else min(high, opening.opened_ms)
        else:
            low = opening.opened_ms if low is None else max(low, opening.opened_ms)
    return Appended(When(low, high), ())


def _of_the_end(steps: Iterable[Step]) -> list[Step]:
    """The steps of the log end, and what was found at starts and left by truncations, in the order
    of time: the files have it by offset.
    """
    some = [step for step in steps if step.kind in _ENDS or step.kind is Kind.OPENED]
    left = {(step.since_ms, step.last) for step in some if step.kind is Kind.OPENED}

    def order(step: Step) -> tuple[int, int]:
        # What begins at the end that was left in the same millisecond came after that.
        is_after = step.kind in _ENDS and (step.since_ms, step.before) in left
        return step.since_ms, 1 if step.kind is Kind.OPENED else 2 * is_after

    return sorted(some, key=order)


def high_watermark_passed(
    steps: Iterable[Step], offset: int, opening: Opening | None, after: When
) -> When:
    """When the high watermark passed the offset, which was appended at `after`: not before that."""
    low, high = after.since_ms, None
    for step in steps:
        if step.kind not in _HIGHS or (low is not None and step.until_ms < low):
            continue
        if step.before <= offset < step.last:
            since_ms, until_ms = _within(step, offset)
            assert since_ms is not None
            return When(since_ms if low is None else max(since_ms, low), until_ms)
        if step.last <= offset:
            low = step.until_ms
        elif high is None:
            high = step.since_ms
    is_before = opening is None or (low is not None and low > opening.opened_ms)
    if opening is not None and not is_before and offset < opening.high_watermark:
        high = opening.opened_ms if high is None else min(high, opening.opened_ms)
    return When(low, high)


def deliveries(steps: Iterable[Step], offset: int, written: Written = UNWRITTEN) -> list[Delivered]:
    """The pipelines that delivered the offset, in order of time."""
    every = list(steps)
    pipelines = dict.fromkeys(
        cast(Pipeline, step.name) for step in every if step.kind is Kind.DELIVERED
    )
    found = (
        delivery_of(pipeline, lives_of(every, pipeline), offset, written) for pipeline in pipelines
    )
    return sorted((one for one in found if one), key=lambda one: one.when.until_ms or 0)


def steps_of(steps: Iterable[Step], pipeline: Pipeline) -> list[Step]:
    """The steps of one pipeline."""
    return [step for step in steps if step.kind is Kind.DELIVERED and step.name == pipeline]


def lives_of(steps: Iterable[Step], pipeline: Pipeline) -> list[Step]:
    """The same, and the deletions of its group's offset, after which it begins again."""
    return [
        step
        for step in steps
        if (step.kind is Kind.DELIVERED and step.name == pipeline)
        or (step.kind is Kind.FORGOTTEN and cast(Removal, step.name)[0] == pipeline[0])
    ]


def delivery_of(
    pipeline: Pipeline, steps: Sequence[Step], offset: int, written: Written = UNWRITTEN
) -> Delivered | None:
    """When a pipeline with these steps delivered the offset, None if it has not."""
    since = [step for step in steps if not written.is_after(step)]
    found = _delivered(pipeline, since, offset, written)
    if len(since) == len(steps):
        return found
    before = [step for step in steps if written.is_after(step)]
    if all(map(written.is_surely_after, before)):
        # Nothing before says where the first delivery since then began.
        first = next((step for step in since if step.kind is Kind.DELIVERED), None)
        when = None if found is None or first is None else written.bounded(found.when, first)
        return found and when and found._replace(when=when, is_before=found.is_first_seen)
    earlier = _delivered(pipeline, before, offset, written)
    if earlier is None:
        return _delivered(pipeline, steps, offset, written)
    if found is None:
        return earlier._replace(is_before=True)
    return _one_of(earlier, found)


def _one_of(one: Delivered, other: Delivered) -> Delivered:
    """Delivered by one of both, in the order of time."""
    return other._replace(
        when=When(one.when.since_ms, other.when.until_ms),
        first_version=min(one.first_version, other.first_version),
        last_version=max(one.last_version, other.last_version),
        first_batch=min(one.first_batch, other.first_batch),
        last_batch=max(one.last_batch, other.last_batch),
        span=(min(one.span[0], other.span[0]), max(one.span[1], other.span[1])),
        has_gap=one.has_gap or other.has_gap,
        may_have_rejects=one.may_have_rejects or other.may_have_rejects,
        reads_committed=one.reads_committed and other.reads_committed,
    )


def began_after(steps: Iterable[Step], pipeline: Pipeline, offset: int) -> bool:
    """Whether the pipeline's first batch is known, and began past the offset."""
    first = min(steps_of(steps, pipeline), key=lambda step: step.versions or (), default=None)
    if first is None or first.versions is None or first.unknown_before:
        return False
    return first.versions.first_batch == 0 and first.before > offset


def rewritten_at(steps: Iterable[Step], offset: int, *, always_led: bool = False) -> int | None:
    """When this broker last learned that another record had the offset, which was truncated or
    lost; None if nothing is known of that. `always_led`: it did, so that what its groups and
    pipelines passed was written.
    """
    ends = (*_ENDS, Kind.DELIVERED, Kind.GROUP) if always_led else _ENDS
    end, found = 0, None
    for step in steps:
        if step.kind in ends and step.broker == -1:
            end = max(end, step.last)
            continue
        is_lost = step.kind is Kind.OPENED and step.last <= offset < end
        is_cut = step.kind in (Kind.CUT, Kind.DIVERGED) and step.before <= offset < step.last
        if is_lost or is_cut:
            found = step.until_ms if found is None else max(found, step.until_ms)
    return found


def commit_step(position: int, committed_ms: int, broker: int) -> Step:
    """A step that says of a group's last commit only where the group is, and that it came there by
    then.
    """
    numbers = (committed_ms, committed_ms, position, position, position)
    return Step(Kind.GROUP, None, *numbers, True, broker=broker)


def opened_before(steps: Iterable[Step], offset: int) -> int | None:
    """When this broker last opened the partition without the record of that offset."""
    opened = (step for step in steps if step.kind is Kind.OPENED and step.last <= offset)
    return max((step.until_ms for step in opened), default=None)


def destinations(steps: Iterable[Step], metadata: Iterable[str]) -> set[Destination]:
    """Where pipelines delivered the partition to, by their steps and the groups' last commits."""
    names = {cast(Pipeline, step.name)[2] for step in steps if step.kind is Kind.DELIVERED}
    names |= {found.table for text in metadata if (found := read_delivery(text)) is not None}
    return {to for name in names if (to := destination_of(name)) is not None}


def removed(steps: Iterable[Step], offset: int) -> Removed:
    """When and why the log start passed a deleted offset."""
    high: int | None = None
    some = list(steps)
    # What was removed before that was another record.
    short_ms = opened_before(some, offset)
    for step in some:
        if step.kind is not Kind.START or (short_ms is not None and step.since_ms <= short_ms):
            continue
        if step.before <= offset < step.last:
            when, reason = _within(step, offset), cast(str, step.name)
            return Removed(when if reason else When(None, when.until_ms), reason)
        if step.before > offset:
            high = step.since_ms if high is None else min(high, step.since_ms)
    return Removed(When(None, high), "")


def client_of(clients: Clients, producer_id: int) -> tuple[str, ...]:
    """The client ids that a batch with this producer id (-1: none) can have come from; empty:
    unknown.
    """
    if COPIED in clients:
        return ()
    exact = [client for pair_id, client in clients if pair_id == producer_id]
    if OTHERS in clients:
        # Some names were not kept, so only an exact producer id identifies its client.
        return tuple(exact) if producer_id >= 0 and exact else ()
    return tuple(dict.fromkeys(exact or (client for _, client in clients)))


def _within(step: Step, offset: int) -> When:
    """When a step that covers the offset passed it."""
    if offset < step.first:
        return When(step.since_ms, step.since_ms)
    return When(step.since_ms, step.until_ms)


def openings_of(steps: Iterable[Step]) -> tuple[tuple[int, int], ...]:
    """When this broker opened the log, and where that ended."""
    return tuple((step.until_ms, step.last) for step in steps if step.kind is Kind.OPENED)


def _delivered(
    pipeline: Pipeline, steps: Sequence[Step], offset: int, written: Written
) -> Delivered | None:
    earlier: Step | None = None
    for step in sorted(steps, key=lambda step: step.since_ms):
        if step.kind is Kind.FORGOTTEN:
            if step.last > offset:
                return None  # the step of the delivery is lost, if there was one
            earlier = None
            continue
        if step.last > offset and not _skips(step, earlier, offset):
            if earlier is not None and offset < min(step.before, earlier.last):
                return None  # it was delivered before the first step that is left, if ever
            assert step.versions is not None
            first_batch, last_batch, first_version, last_version = step.versions
            if offset < step.first:
                last_batch, last_version = first_batch, first_version
            if offset < step.before and earlier is not None and earlier.versions is not None:
                first_batch = min(first_batch, earlier.versions.last_batch + 1)
                first_version = min(first_version, earlier.versions.last_version + 1)
            when = _crossed(step, earlier, offset)
            first_seen = step.unknown_before and earlier is None and offset < step.first
            if first_seen:
                # Nothing says where this delivery began, so an earlier one, whose step a crash
                # took, may have had the offset.
                when = When(None, when.until_ms)
                if last_batch > 0:
                    first_batch, first_version = 0, min(first_version, 0)
            numbers = (first_version, last_version, first_batch, last_batch)
            begin = step.before
            if offset < begin:
                begin = min(offset, earlier.last) if earlier is not None else 0
            has_gap = offset < step.before and earlier is not None
            # By the one checkpoint or the other: nothing bounds the batches of the first one. Or
            # the log lost its end in the gap, and perhaps the record that was delivered.
            is_unbounded = has_gap and (
                _begins_again(step, earlier) or _lost_its_end(step, earlier, written)
            )
            rejects = any(one.has_rejects for one in steps) if has_gap else step.has_rejects
            span = (begin, step.last)
            reads = step.reads_committed and not has_gap
            return Delivered(
                *(pipeline, when, *numbers, first_seen, span, has_gap, rejects),
                is_before=is_unbounded,
                reads_committed=reads,
            )
        earlier = step
    return None


def _skips(step: Step, earlier: Step | None, offset: int) -> bool:
    """Whether a delivery begins past the offset although it directly follows the previous one."""
    if earlier is None or earlier.versions is None or step.versions is None:
        return offset < step.before and not step.unknown_before
    follows = step.versions.first_batch <= earlier.versions.last_batch + 1
    if _begins_again(step, earlier):
        follows = step.versions.first_batch == 0
    return offset < step.before and not step.unknown_before and follows


def _lost_its_end(step: Step, earlier: Step | None, written: Written) -> bool:
    """Whether the log was opened between both, and ended before the offset that the pipeline had
    reached by then.
    """
    assert earlier is not None
    skew_ms = MAX_SKEW_MS if written.is_told(step) or written.is_told(earlier) else 0
    return any(
        earlier.until_ms - skew_ms <= at_ms <= step.since_ms + skew_ms and end < step.before
        for at_ms, end in written.openings
    )


def _begins_again(step: Step, earlier: Step | None) -> bool:
    """Whether a delivery is by another checkpoint than the one before, as far as is known."""
    if earlier is None or earlier.versions is None or step.versions is None:
        return False
    if step.checkpoint and earlier.checkpoint:
        return step.checkpoint != earlier.checkpoint
    return step.versions.first_batch <= earlier.versions.last_batch


def _crossed(step: Step, earlier: Step | None, offset: int) -> When:
    """When the first step that ends past the offset passed it; `earlier` is the step before it.

    If a step does not begin at the earlier one's value, steps between them are lost.
    """
    position = _position(earlier)
    if step.before <= offset and position in (step.before, None):
        return _within(step, offset)
    until_ms = _within(step, offset).until_ms
    if earlier is not None:
        return When(earlier.until_ms, until_ms)
    # Either the first commit ever (then it is exact) or the steps before it are lost.
    return When(step.since_ms if step.unknown_before else None, until_ms)


def _position(step: Step | None) -> int | None:
    if step is None:
        return None
    return step.first if step.kind is Kind.SET_BACK else step.last
