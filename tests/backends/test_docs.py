"""The page about backends keeps its word."""

import re
from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from gateway.backends.kinds import KINDS, kind_of, known_kinds
from gateway.backends.scripted import load_scenario
from gateway.backends.scripted.backend import ScriptedBackend
from gateway.backends.scripted.scenario_schema import STEPS
from tests.support.backends.turn_driver import FakeTurn, play, tell
from tests.support.dialect_tables import DIALECTS
from tests.support.dialect_tables import table as dialect_table

PAGE = (Path(__file__).parents[2] / "docs" / "backends.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"```(python|yaml)\n(rules:.*?|from .*?)```", PAGE, re.DOTALL))


def test_the_page_shows_what_reaches_which_agent() -> None:
    table = PAGE.partition("## What of a session reaches")[2].partition("\n- ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    shown = {cells[0]: cells[1:] for cells in rows}
    known = {f"`{kind}`": support for kind in known_kinds() if (support := kind_of(kind, Path()).support) is not None}
    assert shown == {
        **{name: [str(support[feature].level) for feature in m.SESSION_FEATURES] for name, support in known.items()},
        **{f"`remote` of `{name}`": [str(dialect_table(name).client_support[feature]) for feature in m.SESSION_FEATURES]
           for name in DIALECTS},
    }


async def test_the_example_backend_works() -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES["python"], names)
    for permission, text in (
        (m.Permission.ASK, "Your message has 5 characters."),
        (m.Permission.DENY, "Your message has Tool call denied: the session does not allow it characters."),
    ):
        turn = FakeTurn(m.SendMessage(content="seven"), settings=m.Settings(tools={"measure": permission}))
        assert (await play(names["Surveyor"](), turn)).text == text
        await names["Surveyor"]().close()


async def test_the_example_scenario_works() -> None:
    backend = ScriptedBackend(load_scenario("page.yaml", EXAMPLES["yaml"]))
    turn = await tell("A refund, please", backend=backend)
    assert turn.text == "The order says: done by the clientYou decided: proceed"
    assert (await tell("ahoy", backend=backend)).text == "Hello, ahoy"


def test_every_backend_setting_directive_and_step_is_on_the_page() -> None:
    rows = set(re.findall(r"^\| `/?([a-z-]+)", PAGE, re.MULTILINE))
    assert not ({*KINDS, "scripted"} | set(ARGUMENT_PARSERS) | set(STEPS)) - rows
    assert all(f"`{field}`" in PAGE for kind in KINDS.values() if kind.settings for field in kind.settings.model_fields)


def test_what_is_to_be_found_in_the_journal_is_what_is_said() -> None:
    table = PAGE.partition("| `reason` has |")[2].partition("\n\n")[0]
    shown = [words for row in table.splitlines()[2:] for words in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    source = "".join(path.read_text() for path in (Path(__file__).parents[2] / "gateway").rglob("*.py"))
    said = [re.sub(r"\d+$|initialize$", "", words) for words in shown]
    assert len(said) > 10 and [words for words in said if words not in source] == []
