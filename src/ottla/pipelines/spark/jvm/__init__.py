"""The JVM behind PySpark: all that is asked of it beside PySpark's public interface."""
