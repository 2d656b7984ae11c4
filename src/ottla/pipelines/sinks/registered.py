"""The sinks that there are: a line for each, and nothing else asks for its kind.

The folder of a sink exports its `SinkSpec`, and the functions of `ottla.pipelines` that it has.
"""

from typing import Final

from ottla.pipelines.sinks.delta import *
from ottla.pipelines.sinks.files import *
from ottla.pipelines.sinks.iceberg import *
from ottla.pipelines.sinks.postgresql import *
from ottla.pipelines.sinks.topic import *
from ottla.pipelines.spec.sink import SinkSpec

SINKS: Final[tuple[type[SinkSpec], ...]] = tuple(
    one
    for one in tuple(globals().values())
    if isinstance(one, type) and issubclass(one, SinkSpec) and one is not SinkSpec
)
"""In the order of the lines; a file that marks none has the first."""
