from ottla.controller.image import ControllerChanged
from ottla.controller.plan import DONE, Draft, Outcome, refused
from ottla.coordination.tree import Create
from ottla.protocol.errors import ApiError, ErrorCode


def test_a_draft_becomes_a_plan_and_validate_only_drops_what_would_be_done() -> None:
    draft = Draft([Create("/a")], [ControllerChanged(1, 1)])
    plan = draft.plan("reply")
    assert (plan.reply, plan.writes, plan.deltas) == (
        "reply",
        (Create("/a"),),
        (ControllerChanged(1, 1),),
    )
    assert draft.plan("reply", validate_only=True).writes == ()
    assert draft.plan("reply", validate_only=True).deltas == ()


def test_outcomes() -> None:
    assert not DONE.failed
    outcome = refused(ApiError(ErrorCode.invalid_config, "why"))
    assert outcome == Outcome(ErrorCode.invalid_config, "why")
    assert outcome.failed
