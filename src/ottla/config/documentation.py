"""The tables of docs/configuration.md, generated from the definitions.

`python -m ottla.config.documentation docs/configuration.md` rewrites them between the marks `<!--
begin NAME -->` and `<!-- end NAME -->`. A test fails if the page and the code differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ottla.config.broker import BrokerConfig
from ottla.config.broker_server import OwnSettings
from ottla.config.group import GroupConfig
from ottla.config.group_bounds import GROUP_BOUNDS
from ottla.config.setting import Setting
from ottla.config.synonym import SYNONYMS
from ottla.config.topic import TopicConfig
from ottla.config.unneeded import UNNEEDED, RefusedSettings


def tables() -> dict[str, str]:
    """Each table's name in the page, and its Markdown."""
    own = OwnSettings.definitions
    refused = RefusedSettings.definitions
    broker = {
        name: each
        for name, each in BrokerConfig.definitions.items()
        if name not in own and name not in refused and not each.internal
    }
    topic = {name: each for name, each in TopicConfig.definitions.items() if not each.internal}
    return {
        "different": _different(),
        "own": _settings(own),
        "broker": _settings(broker),
        "topic": _topic_settings(topic),
        "group": _group_settings(),
        "refused": _settings(refused),
        "unneeded": _unneeded(),
    }


def with_tables(page: str) -> str:
    """The page with all tables regenerated."""
    for name, table in tables().items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        assert found, begin
        assert closed, end
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def _default(setting: Setting[Any]) -> str:
    text = setting.default_text
    if text is None:
        return "(none)"
    return f"`{text}`" if text else "(empty)"


def _allowed(setting: Setting[Any]) -> str:
    return "" if setting.validator is None else setting.validator.allowed


def _different() -> str:
    rows = [
        (f"`{name}`", _default(each), each.kafka_default, each.why)
        for name, each in BrokerConfig.definitions.items()
        if each.kafka_default is not None
    ]
    return _table(("Setting", "Here", "Apache Kafka", "Why"), rows)


def _settings(definitions: Mapping[str, Setting[Any]]) -> str:
    rows = [
        (
            f"`{name}`",
            each.kind.name.lower(),
            _default(each),
            _allowed(each),
            each.update.value,
            each.documentation,
        )
        for name, each in definitions.items()
    ]
    return _table(("Setting", "Type", "Default", "Allowed", "Changes", "Description"), rows)


def _topic_settings(definitions: Mapping[str, Setting[Any]]) -> str:
    rows = [
        (
            f"`{name}`",
            each.kind.name.lower(),
            _default(each),
            _allowed(each),
            ", ".join(f"`{synonym.name}`" for synonym in SYNONYMS.get(name, ())),
            each.documentation,
        )
        for name, each in definitions.items()
    ]
    return _table(("Setting", "Type", "Default", "Allowed", "Default from", "Description"), rows)


def _group_settings() -> str:
    rows = []
    for name, each in GroupConfig.definitions.items():
        if each.internal:
            continue
        default, *limits = GROUP_BOUNDS.get(name, (None, None, None))
        allowed = " to ".join(f"`{limit}`" for limit in limits if limit is not None)
        rows.append(
            (
                f"`{name}`",
                each.kind.name.lower(),
                _default(each),
                allowed or _allowed(each),
                "" if default is None else f"`{default}`",
                each.documentation,
            )
        )
    return _table(("Setting", "Type", "Default", "Allowed", "Default from", "Description"), rows)


def _unneeded() -> str:
    reasons: dict[str, list[str]] = {}
    for name, reason in UNNEEDED.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    return "\n".join(
        f"- {reason[0].upper()}{reason[1:]}: {', '.join(names)}."
        for reason, names in reasons.items()
    )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_tables(target.read_text()))
