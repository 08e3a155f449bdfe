"""Section settings: groups of named values, their schema and their status; whatever is changed is put back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import Failed, NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import BAD, FORBIDDEN, coded, heard, is_taken, manage, obtained

CHANGES = "changes a setting of the server for a moment"
MASKS = ("***", "abc...wxyz")
WRONG_BODIES: tuple[Any, ...] = ([], "plain", {"llm": "plain"}, {"llm": ["plain"]})
_turns: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = WeakKeyDictionary()
"""Settings are the user's, not the case's: cases that change them do so one after the other."""


@dataclass(frozen=True)
class Setting:
    """A setting that can be changed: what it is, and what else it may be."""

    group: str
    key: str
    shown: str
    default: str
    other: str
    has_options: bool = False

    def body(self, value: Any) -> dict[str, dict[str, Any]]:
        return {self.group: {self.key: value}}

    def of(self, settings: Any) -> Any:
        """The value that settings have for it."""
        group = settings.get(self.group) if isinstance(settings, dict) else None
        return group.get(self.key) if isinstance(group, dict) else None


# -- the four rows -----------------------------------------------------------------------------------------------------


@requirement("ZF-HTTP-3.9-01")
async def the_settings_are_shown(exam: ZenfluxExamination) -> None:
    """GET /settings shows the settings; that they come in groups is another matter."""
    data = (await manage(exam, "GET", "/settings")).done()
    expect.that(isinstance(data, dict | list), "the settings, an object or a list", data)


@requirement("ZF-HTTP-3.9-02")
async def settings_are_taken(exam: ZenfluxExamination) -> None:
    """PUT /settings takes a part of the settings, and shows what was put: here the value that was there before."""
    async with _turn():
        before, schema = await heard(exam, "/settings"), await heard(exam, "/settings/schema")
        setting = next(_plain(before.body["data"], schema.body["data"]), None) if before and schema else None
        if setting is None:
            is_taken(await manage(exam, "PUT", "/settings", {}), *FORBIDDEN, *BAD)
            return
        try:
            answer = await manage(exam, "PUT", "/settings", setting.body(setting.shown))
            if is_taken(answer, *FORBIDDEN) and (after := await heard(exam, "/settings")):
                expect.equal(f"{setting.key}, as it was put", setting.shown, setting.of(after.body["data"]))
        finally:
            await _put_back(exam, setting)


def _plain(settings: Any, schema: Any) -> Iterator[Setting]:
    """The settings that have a value, no mask and a default, so that they can be put and put back."""
    groups = settings.items() if isinstance(settings, dict) else ()
    for group, values in groups:
        for key, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, str) and value and "*" not in value and "..." not in value:
                about = Setting(group, key, value, "", "").of(schema)
                if isinstance(about, dict) and isinstance(about.get("default"), str):
                    yield Setting(group, key, value, about["default"], "")


@requirement("ZF-HTTP-3.9-03")
async def the_status_of_settings_is_shown(exam: ZenfluxExamination) -> None:
    """GET /settings/status says how far the server is configured."""
    expect.keyed("the status", (await manage(exam, "GET", "/settings/status")).done())


@requirement("ZF-HTTP-3.9-04")
async def the_settings_are_described(exam: ZenfluxExamination) -> None:
    """GET /settings/schema describes the settings."""
    expect.keyed("the schema", (await manage(exam, "GET", "/settings/schema")).done())


# -- shapes ------------------------------------------------------------------------------------------------------------


@requirement("ZF-SET-01.out")
async def settings_are_texts_in_groups(exam: ZenfluxExamination) -> None:
    """GET /settings is groups of keys, each with a string; what is not set is an empty one."""
    exam.schemas.fit("settings", await obtained(exam, "GET", "/settings"), "the data of GET /settings")


@requirement("ZF-SET-03.out")
async def the_status_says_what_is_missing(exam: ZenfluxExamination) -> None:
    """GET /settings/status is {configured, missing, configured_providers, summary}, configured if nothing misses."""
    data = await obtained(exam, "GET", "/settings/status")
    exam.schemas.fit("settings_status", data, "the data of GET /settings/status")
    expect.equal("configured", not data["missing"], data["configured"])


@requirement("ZF-SET-04.out")
async def every_setting_is_described(exam: ZenfluxExamination) -> None:
    """GET /settings/schema has label, required, secret, default and type of every setting, and of nothing else."""
    data = await obtained(exam, "GET", "/settings/schema")
    exam.schemas.fit("settings_schema", data, "the data of GET /settings/schema")
    shown = await obtained(exam, "GET", "/settings")
    keys = {group: sorted(values) for group, values in shown.items() if isinstance(values, dict)}
    expect.equal("the settings that are described", keys, {group: sorted(values) for group, values in data.items()})


# -- changes -----------------------------------------------------------------------------------------------------------


async def _settings(exam: ZenfluxExamination, is_secret: bool) -> AsyncIterator[Setting]:
    """The settings that can be changed and put back; a secret only if it is not set."""
    shown = await obtained(exam, "GET", "/settings")
    schema = expect.keyed("the schema", await obtained(exam, "GET", "/settings/schema"))
    for group, keys in schema.items():
        for key, about in keys.items() if isinstance(keys, dict) else ():
            if isinstance(about, dict) and bool(about.get("secret")) is is_secret:
                setting = _setting(group, key, about, shown)
                if setting is not None and (not is_secret or setting.shown == ""):
                    yield setting


def _setting(group: str, key: str, about: dict[str, Any], shown: Any) -> Setting | None:
    """The setting with another value that it may have; None if there is none, or if it is not shown."""
    options = about.get("options")
    values = [option.get("value") for option in options if isinstance(option, dict)] if options else None
    plain = Setting(group, key, "", str(about.get("default", "")), f"examined{uuid4().hex[:8]}", bool(options))
    now = plain.of(shown)
    others = [plain.other] if values is None else [value for value in values if value and value != now]
    if not isinstance(now, str) or not others or about.get("type") == "toggle":
        return None
    return Setting(group, key, now, plain.default, str(others[0]), plain.has_options)


def _turn() -> asyncio.Lock:
    """What a case holds that changes settings."""
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


@asynccontextmanager
async def _changing(exam: ZenfluxExamination, is_secret: bool = False) -> AsyncIterator[Setting]:
    """A setting that may be changed meanwhile; texts rather than choices, for agents work with what is chosen."""
    async with _turn():
        with expect.preparing("a setting to change"):
            found = [setting async for setting in _settings(exam, is_secret)]
        if not found:
            kind = "a secret that is not set" if is_secret else "a setting with another value"
            raise NotTestable(f"the schema of the settings has no {kind}")
        setting = min(found, key=lambda one: one.has_options)
        try:
            yield setting
        finally:
            await _put_back(exam, setting)


async def _put_back(exam: ZenfluxExamination, setting: Setting) -> None:
    """Make the setting what it was, or remove what is as without it; nobody minds on a server that is thrown away."""
    if exam.http.is_disposable:
        return
    left = f"the setting {setting.group}.{setting.key}"
    exam.http.transcript.left.append(left)
    try:
        now = setting.of((await exam.ask("GET", "/settings")).body["data"])
        is_usual = setting.shown == setting.default
        is_as_before = now == setting.shown and not is_usual
        body = setting.body("" if is_usual else setting.shown)
        if not is_as_before:
            await exam.ask("PUT", "/settings", body)
            now = setting.of((await exam.ask("GET", "/settings")).body["data"])
        if now == setting.shown:
            exam.http.transcript.left.remove(left)
    except Failed as error:
        exam.http.transcript.remark(f"putting back: {error}")


async def _put(exam: ZenfluxExamination, body: Any) -> Any:
    """The settings that a change is answered with."""
    return await obtained(exam, "PUT", "/settings", body)


async def _shown(exam: ZenfluxExamination, setting: Setting) -> Any:
    return setting.of(await obtained(exam, "GET", "/settings"))


@requirement("ZF-SET-01.does", destructive=CHANGES)
async def secrets_are_masked(exam: ZenfluxExamination) -> None:
    """A secret that was put is never shown again: GET and PUT /settings show a mask in its place."""
    async with _changing(exam, is_secret=True) as secret:
        with expect.preparing("a secret"):
            told = await manage(exam, "PUT", "/settings", secret.body(secret.other))
            told.done()
        shown = await manage(exam, "GET", "/settings")
        for answer in (told, shown):
            expect.that(secret.other not in answer.reply.text, "the secret nowhere in the answer", "it is there")
        value = secret.of(shown.done())
        expect.that(isinstance(value, str) and value != "", "a mask where the secret is", value)


@requirement("ZF-SET-02.in", destructive=CHANGES)
async def a_part_of_the_settings_is_enough(exam: ZenfluxExamination) -> None:
    """PUT /settings changes what it names and nothing else; "" removes; masks and unknown names are passed over."""
    async with _changing(exam) as setting:
        before = await obtained(exam, "GET", "/settings")
        await _put(exam, setting.body(setting.other))
        after = await obtained(exam, "GET", "/settings")
        expect.equal("the setting that was put", setting.other, setting.of(after))
        expect.equal("the other settings", _others(before, setting), _others(after, setting))
        stranger = f"unknown{uuid4().hex[:8]}"
        unknown = ({stranger: {"KEY": "x"}}, {setting.group: {stranger: "x"}})
        for body in (*map(setting.body, MASKS), *unknown):
            (await manage(exam, "PUT", "/settings", body)).done()
            now = await obtained(exam, "GET", "/settings")
            expect.equal(f"the settings after {expect.show(body)}", after, now)
        await _put(exam, setting.body(""))
        expect.equal("a setting that was removed", setting.default, await _shown(exam, setting))


def _others(settings: Any, setting: Setting) -> Any:
    """The settings without this one."""
    group = {key: value for key, value in settings[setting.group].items() if key != setting.key}
    return {**settings, setting.group: group}


@requirement("ZF-SET-02.out", destructive=CHANGES)
async def a_change_is_answered_with_the_settings(exam: ZenfluxExamination) -> None:
    """PUT /settings is answered with the settings as they are after the change."""
    async with _changing(exam) as setting:
        told = await _put(exam, setting.body(setting.other))
        expect.equal("the setting in the answer", setting.other, setting.of(told))
        expect.equal("the answer, as GET /settings", await obtained(exam, "GET", "/settings"), told)


@requirement("ZF-SET-02.err")
async def wrong_settings_are_refused(exam: ZenfluxExamination) -> None:
    """PUT /settings with something other than groups of strings, or a value that is no option, is a 400."""
    async with _changing(exam) as setting:
        values = (7, None, ["x"], *(("none-of-them",) if setting.has_options else ()))
        for body in (*WRONG_BODIES, *map(setting.body, values)):
            coded(await manage(exam, "PUT", "/settings", body), "it is not groups of strings", *BAD)
        expect.equal("the setting after refusals", setting.shown, await _shown(exam, setting))
