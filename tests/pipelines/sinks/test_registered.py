"""The functions for Python take what the fields of a pipeline file take."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ottla.pipelines.sinks.registered import SINKS
from ottla.pipelines.spec.option import options_of
from ottla.pipelines.spec.pipeline import DeliverySpec
from ottla.pipelines.spec.sink import SinkSpec

OTHER_NAMES = {"guarantee": "delivery", "topic": "name"}
"""What an option of a file is called in Python."""
OF_FILES_ALONE = {"format": "parquet"}
"""A file chooses the sink by it, and has no default."""
FOR_TABLES = {"max_rejects", "dead_letters"}


def function_of(kind: type[SinkSpec]) -> Callable[..., Any]:
    """The function in the file of a sink's arguments."""
    here: dict[str, Callable[..., Any]] = vars(sys.modules[kind.__module__])
    return next(one for name, one in here.items() if name.startswith("to_"))


@pytest.mark.parametrize("kind", SINKS)
def test_a_function_has_each_option_of_its_sink_with_its_default(kind: type[SinkSpec]) -> None:
    parameters = dict(inspect.signature(function_of(kind)).parameters)
    assert parameters.pop("df").default is inspect.Parameter.empty
    parameters.pop("bootstrap_servers", None)  # a file takes those of its source
    options = {**options_of(kind), **options_of(DeliverySpec)}
    for name, option in options.items():
        if name in FOR_TABLES and not kind.keeps_rejects:
            continue
        parameter = parameters.pop(OTHER_NAMES.get(name, name))
        if option.is_required:
            assert parameter.default is inspect.Parameter.empty, name
        elif name == "group":
            assert parameter.default is None, "a file's is the pipeline's name"
        elif option.kind == "conditions":
            assert (parameter.default, option.default) == (None, ()), name
        elif option.kind != "settings" and name != "kafka":
            assert parameter.default == (OF_FILES_ALONE.get(name) or option.default), name
    assert not parameters, "each argument is a field of a file, too"
