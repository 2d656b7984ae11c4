"""What others committed just before a batch is noticed when the batch is there."""

from dataclasses import replace

import pytest

from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.port import Batch
from ottla.pipelines.target.written import check_written

BATCH = Batch("q", 3, "", checkpoint="cp")
HELD = Held("the table t", 3, is_complete=True, taken_out_by="a rollback")


def test_a_table_that_has_the_batch_and_those_before_it_is_left_alone() -> None:
    check_written(BATCH, HELD, None)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (replace(HELD, taken_out=(2,)), "was set back by a rollback and no longer has batch 2"),
        (replace(HELD, continued_by="q2"), "was continued by the query q2"),
        (replace(HELD, batch=2), "has the batches up to 2 of this query"),
        (replace(HELD, batch=None), "has delivered batches that the table t does not hold"),
    ],
)
def test_a_table_that_was_changed_meanwhile_is_told(held: Held, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as said:
        check_written(BATCH, held, None)
    assert str(said.value).endswith(
        ". Its batch 3 was written before that was noticed: the table may have rows of it twice"
    )
