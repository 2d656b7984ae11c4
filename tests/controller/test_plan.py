from ottla.controller.image import ControllerChanged
from ottla.controller.plan import DONE, Outcome, PlanBuilder, refused
from ottla.coordination.tree import Create
from ottla.protocol.errors import ApiError, ErrorCode


def test_validate_only_drops_writes_and_deltas() -> None:
    builder = PlanBuilder([Create("/a")], [ControllerChanged(1, 1)])
    plan = builder.plan("reply")
    assert (plan.reply, plan.writes, plan.deltas) == (
        "reply",
        (Create("/a"),),
        (ControllerChanged(1, 1),),
    )
    assert builder.plan("reply", validate_only=True).writes == ()
    assert builder.plan("reply", validate_only=True).deltas == ()


def test_outcomes() -> None:
    assert not DONE.failed
    outcome = refused(ApiError(ErrorCode.invalid_config, "why"))
    assert outcome == Outcome(ErrorCode.invalid_config, "why")
    assert outcome.failed
