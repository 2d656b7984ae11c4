"""A Python pipeline file is parsed and not run."""

import pytest

from ottla.pipelines.file.python_source import PythonSource, read_python
from ottla.pipelines.spec.problem import Problem


def test_the_document_and_the_functions() -> None:
    found = read_python(
        "import nowhere\n"
        "PIPELINE: dict = {'source': {'topic': 'a'}}\n"
        "def transform(rows): return rows\n"
        "def late(rows, minutes, /, unit='m'): return rows\n"
    )
    assert found == PythonSource({"source": {"topic": "a"}}, {"transform": 1, "late": 2})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def transform(rows:\n", "is not Python at line 1"),
        ("x = 1\n", "has no PIPELINE = "),
        ("import os\nPIPELINE = {'a': os.environ['B']}\n", "must be a literal"),
        ("PIPELINE = [1]\n", "must be a dict"),
        ("x = '\0'", "is not Python"),
    ],
)
def test_what_cannot_be_read_is_one_problem(text: str, said: str) -> None:
    found = read_python(text)
    assert isinstance(found, Problem)
    assert said in str(found)
