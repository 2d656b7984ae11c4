"""One broker: its log folders and settings."""

from __future__ import annotations

from starlette.responses import Response

from ottla.client.admin.configs import settings_of
from ottla.client.admin.log_dirs import log_dirs
from ottla.console.errors import NotFoundError
from ottla.console.pages.setting_change import changed_setting
from ottla.console.pages.topic_settings import changed_first
from ottla.console.visit import Visit


def broker(visit: Visit) -> Response:
    """The page at `/brokers/ID`."""
    client, number = visit.client, int(visit.path["broker"])
    live = client.metadata([]).brokers
    if number not in live:
        raise NotFoundError(f"broker {number} is not live.", "Live brokers are on the overview.")
    found = settings_of(client, "broker", [str(number)])[str(number)]
    folders, why = log_dirs(client, brokers=[number])
    return visit.page(
        "broker.html",
        broker=live[number],
        folders=folders,
        why_no_folders=why.get(number),
        rows=changed_first(found, "broker"),
    )


def change_broker(visit: Visit) -> Response:
    """Sets or unsets a setting of this broker alone."""
    number = int(visit.path["broker"])
    return changed_setting(visit, "broker", str(number), f"/brokers/{number}")
