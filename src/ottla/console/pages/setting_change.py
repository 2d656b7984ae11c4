"""Changing one setting of a topic or a broker. The form has the value that its page has shown
(`seen`): if another tab has changed it since, nothing is done.
"""

from __future__ import annotations

from starlette.responses import Response

from ottla.client.admin.configs import alter_settings, settings_of
from ottla.client.admin.setting_units import unit_hint_for
from ottla.console.errors import BadFormError, ConflictError
from ottla.console.visit import Visit


def changed_setting(visit: Visit, kind: str, name: str, page: str) -> Response:
    """Sets the setting of the form, or unsets it; then `page`. `kind`: topic or broker."""
    setting = visit.text("setting")
    known = {each.name: each for each in settings_of(visit.client, kind, [name])[name]}
    if setting not in known:
        raise BadFormError(f"there is no setting {setting!r}.")
    if known[setting].is_read_only:
        raise BadFormError(f"{setting} cannot be changed while the broker runs.")
    present = known[setting].value or ""
    if visit.form.get("seen", "") != present:
        raise ConflictError(
            f"{setting} is {present!r} by now: somebody has changed it since this page was loaded.",
            "Nothing was changed. Load the page again.",
        )
    if visit.text("do") == "unset":
        alter_settings(visit.client, kind, name, {}, [setting])
        return visit.go(page, f"{setting} is unset.")
    value = visit.text("value")
    with unit_hint_for({setting: value}):
        alter_settings(visit.client, kind, name, {setting: value}, [])
    return visit.go(page, f"{setting} is {'set' if known[setting].is_sensitive else value} now.")
