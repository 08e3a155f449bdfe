"""Section sessions, environment variables: what the string may hold, rule by rule."""

from typing import Any

from conformance.cas.examination import CasExamination
from conformance.kit import expect
from conformance.kit.case import requirement

MOST, LARGEST_VALUE, LARGEST_ALL = 64, 8 * 1024, 64 * 1024


async def _taken(exam: CasExamination, given: str, wanted: dict[str, str]) -> None:
    """Expect that the variables are taken, and come back as this object."""
    talk = await exam.admit(environment_variables=given)
    expect.equal(f"the variables in {expect.show(given)[:80]}", wanted, talk.session["environment_variables"])
    expect.equal("the variables from GET", wanted, (await talk.info())["environment_variables"])


async def _refused(exam: CasExamination, given: Any, *names: str, **more: Any) -> None:
    """Expect a 400 that names these variables."""
    error = exam.refused(await exam.attempt(environment_variables=given, **more), 400)["error"]
    words = f"{error['message']} {error.get('param') or ''}"
    expect.that(all(name in words for name in names), f"a refusal that names {', '.join(names)}", error)


def _joined(variables: dict[str, str]) -> str:
    return ";".join(f"{name}={value}" for name, value in variables.items())


@requirement("CAS-SESS-06")
async def variables_are_parted_by_semicolons_or_newlines(exam: CasExamination) -> None:
    """KEY=VALUE entries parted either way come back as an object; a value may hold further equals signs."""
    await _taken(exam, "A=1;B=two words", {"A": "1", "B": "two words"})
    await _taken(exam, "A=1\nB=2", {"A": "1", "B": "2"})
    await _taken(exam, "A=1;B=2\nC=x=y", {"A": "1", "B": "2", "C": "x=y"})


@requirement("CAS-SESS-06")
async def names_and_empty_values(exam: CasExamination) -> None:
    """Letters, digits and underscores make a name, and a value may be empty."""
    await _taken(exam, "EMPTY=;_x9=1;lower=中文", {"EMPTY": "", "_x9": "1", "lower": "中文"})


@requirement("CAS-SESS-06")
async def a_wrong_name_is_refused(exam: CasExamination) -> None:
    """A name that begins with a digit, or has other characters, or none at all, is a 400 naming it."""
    for name in ("1ST", "WITH-DASH", "WITH.DOT", "ÄRGER"):
        await _refused(exam, f"GOOD=1;{name}=x", name)
    await _refused(exam, "GOOD=1;=x")


@requirement("CAS-SESS-06")
async def an_entry_needs_an_equals_sign(exam: CasExamination) -> None:
    """An entry that is only a name is a 400 naming it."""
    await _refused(exam, "GOOD=1;LONELY", "LONELY")


@requirement("CAS-SESS-06")
async def there_are_at_most_64_variables(exam: CasExamination) -> None:
    """64 are taken, 65 are a 400."""
    variables = {f"NAME_{place:02}": "x" for place in range(MOST)}
    await _taken(exam, _joined(variables), variables)
    await _refused(exam, _joined(variables | {"ONE_MORE": "x"}))


@requirement("CAS-SESS-06")
async def a_value_has_at_most_8_kib(exam: CasExamination) -> None:
    """8192 bytes are taken; one more, or as many in characters of two bytes, is a 400 naming the variable."""
    variables = {"LARGE": "x" * LARGEST_VALUE}
    await _taken(exam, _joined(variables), variables)
    await _refused(exam, _joined({"TOO_LARGE": "x" * (LARGEST_VALUE + 1)}), "TOO_LARGE")
    await _refused(exam, _joined({"TOO_LARGE": "é" * (LARGEST_VALUE // 2 + 1)}), "TOO_LARGE")


@requirement("CAS-SESS-06")
async def all_together_have_at_most_64_kib(exam: CasExamination) -> None:
    """Names and values of 65536 bytes are taken; one more is a 400."""
    variables = {f"VALUE_{place}": "x" * LARGEST_VALUE for place in range(7)}
    used = sum(len(name) + len(value) for name, value in variables.items())
    last = {"LAST": "x" * (LARGEST_ALL - used - len("LAST"))}
    await _taken(exam, _joined(variables | last), variables | last)
    too_much = variables | {"LAST": last["LAST"] + "x"}
    await _refused(exam, _joined(too_much))


@requirement("CAS-SESS-06")
async def some_names_are_reserved(exam: CasExamination) -> None:
    """SERVER_ENDPOINT, USER_ID and WORK_DIR are a 400 naming them; names that only contain them are free."""
    for name in ("SERVER_ENDPOINT", "USER_ID", "WORK_DIR"):
        await _refused(exam, f"GOOD=1;{name}=x", name)
    await _taken(exam, "MY_USER_ID=1;WORK_DIRS=2", {"MY_USER_ID": "1", "WORK_DIRS": "2"})


@requirement("CAS-SESS-06")
async def some_prefixes_are_reserved(exam: CasExamination) -> None:
    """Names that begin with CAW_ or QODER_ are a 400 naming them; names that only begin alike are free."""
    for name in ("CAW_X", "QODER_X"):
        await _refused(exam, f"GOOD=1;{name}=x", name)
    await _taken(exam, "CAWING=1;QODERS=2;MY_CAW_X=3", {"CAWING": "1", "QODERS": "2", "MY_CAW_X": "3"})


@requirement("CAS-SESS-06")
async def self_hosted_environments_take_none(exam: CasExamination) -> None:
    """Variables for a session in a self-hosted environment are a 400."""
    environment = await exam.new_environment(type="self_hosted")
    await _refused(exam, "A=1", environment_id=environment["id"])


@requirement("CAS-SESS-06")
async def an_object_is_taken_or_refused(exam: CasExamination) -> None:
    """An object instead of a string is a 400, or is taken and comes back as it is; a number is a 400."""
    reply = await exam.attempt(environment_variables={"A": "1", "EMPTY": ""})
    if expect.status(reply, 201, 400).status == 201:
        expect.equal("the variables", {"A": "1", "EMPTY": ""}, reply.json()["environment_variables"])
    else:
        exam.refused(reply, 400)
    await _refused(exam, 7)
