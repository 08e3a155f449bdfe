"""Section key: the ApiKey object, and the one time its plaintext is told."""

from typing import Any

from conformance.blade.examination import BladeExamination
from conformance.kit import expect
from conformance.kit.case import requirement

PATH = "/api/user/api-keys/"
Created = tuple[dict[str, Any], str]


async def minted(exam: BladeExamination, name: str = "Examiners") -> Created:
    """A new key and its plaintext, deleted when the case is over."""
    with expect.owned("BL-KEY-01"):
        body = expect.keyed("a new key", await exam.keep(PATH, {"name": name}, "BL-KEY-01"))
    told = body["key"] if isinstance(body.get("key"), dict) else body
    key = exam.read("key", told, "a new API key")
    plaintext = body.get("plaintext") or told.get("plaintext")
    is_told = isinstance(plaintext, str) and bool(plaintext)
    expect.that(is_told, "the plaintext of a new key", sorted(body), "BL-KEY-03")
    return key, str(plaintext)


async def read_keys(exam: BladeExamination) -> list[dict[str, Any]]:
    """The keys as they are listed."""
    body = await exam.asked("GET", PATH)
    found = list(body.values()) if isinstance(body, dict) else [body]
    return expect.first("a list of keys", (item for item in found if isinstance(item, list)), body)


@requirement("BL-KEY-01")
async def a_key_is_complete(exam: BladeExamination) -> None:
    """A new key has all its fields, alone and in the list."""
    key, _ = await minted(exam, "For the examiners")
    expect.equal("the name", "For the examiners", key["name"])
    read = await exam.got("key", f"{PATH}{key['id']}")
    listed = [item for item in await read_keys(exam) if isinstance(item, dict) and item.get("id") == key["id"]]
    expect.equal("how often the key is listed", 1, len(listed))
    listed = [exam.read("key", listed[0], "a key of the list")]
    for name in ("id", "name", "masked", "created_at"):
        expect.equal(f"{name} of the key, read and listed", [key[name]] * 2, [read[name], listed[0][name]])


@requirement("BL-KEY-02")
async def a_masked_key_hides_the_key(exam: BladeExamination) -> None:
    """masked has the ends of the plaintext with dots between, and is shorter than the whole."""
    key, plaintext = await minted(exam)
    head, dots, tail = key["masked"].partition("...")
    expect.that(bool(dots) and bool(head), "masked such as sk-blade-v2-...xxxx", key["masked"])
    expect.that(plaintext.startswith(head) and plaintext.endswith(tail), "masked to have the ends of the key", key)
    expect.that(len(head) + len(tail) < len(plaintext) / 2 + 6, "masked to hide the key", key["masked"])


@requirement("BL-KEY-03")
async def a_plaintext_is_told_once(exam: BladeExamination) -> None:
    """The plaintext is in the answer that made the key and in no other."""
    key, plaintext = await minted(exam)
    one = await exam.http.ask("GET", f"{PATH}{key['id']}")
    many = await exam.http.ask("GET", PATH)
    renamed = await exam.http.ask("PATCH", f"{PATH}{key['id']}", {"name": "Renamed"})
    with expect.owned("BL-KEY-01"):
        shown = expect.status(one, 200).object()
    expect.equal("plaintext afterwards", None, shown.get("plaintext"))
    for reply in (one, many, renamed):
        expect.that(plaintext not in reply.text, f"no plaintext in the answer to {reply.asked}", "it is there")
