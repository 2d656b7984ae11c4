"""The JVM's logging, log4j: loggers that write to a file instead of the screen."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J: Final = "org.apache.logging.log4j"
_ROLLING: Final = f"{_LOG4J}.core.appender.rolling"


class Log4j:
    """The configuration in force."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._context: Any = java_class(spark, f"{_LOG4J}.LogManager").getContext(False)
        self._configuration: Any = self._context.getConfiguration()

    @property
    def source(self) -> str:
        """Where the configuration was read from, empty where it is no file."""
        return str(self._configuration.getConfigurationSource().getLocation() or "")

    def has(self, appender: str) -> bool:
        """Tell whether there is an appender of this name."""
        return self._configuration.getAppender(appender) is not None

    def write_to(
        self, file: Path, appender: str, loggers: Iterable[str], *, size: str, max_files: int
    ) -> None:
        """Have loggers write warnings and errors to a file and its older ones, and nowhere else."""
        configuration = self._configuration
        made = self._rolling_file(file, appender, size, max_files)
        made.start()
        configuration.addAppender(made)
        level = java_class(self._spark, f"{_LOG4J}.Level").WARN
        logger_class = java_class(self._spark, f"{_LOG4J}.core.config.LoggerConfig")
        for name in loggers:
            logger = logger_class(name, level, False)
            logger.addAppender(made, None, None)
            configuration.addLogger(name, logger)
        self._context.updateLoggers()

    def _rolling_file(self, file: Path, appender: str, size: str, max_files: int) -> Any:
        layouts = java_class(self._spark, f"{_LOG4J}.core.layout.PatternLayout")
        policies = java_class(self._spark, f"{_ROLLING}.SizeBasedTriggeringPolicy")
        strategies = java_class(self._spark, f"{_ROLLING}.DefaultRolloverStrategy")
        strategy = strategies.newBuilder().withConfig(self._configuration)
        return (
            java_class(self._spark, f"{_LOG4J}.core.appender.RollingFileAppender")
            .newBuilder()
            .setName(appender)
            .setConfiguration(self._configuration)
            .withFileName(str(file))
            .withFilePattern(f"{file}.%i")
            .withPolicy(policies.createPolicy(size))
            .withStrategy(strategy.withMax(str(max_files - 1)).build())
            .setLayout(layouts.newBuilder().withPattern("%d %p %c: %m%n%ex").build())
            .build()
        )
