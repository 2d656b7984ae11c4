"""What is wrong with a pipeline file."""

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spec.problem import FileError, Problem


def test_all_problems_are_in_one_line() -> None:
    error = FileError("late.toml", [Problem("", "is odd"), Problem("sink.target", "is missing")])
    assert isinstance(error, PipelineError)
    assert str(error) == "late.toml: is odd; sink.target: is missing"
    assert [problem.where for problem in error.problems] == ["", "sink.target"]
