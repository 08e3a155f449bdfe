"""Attribution: how many requirements fail for a fault, and how many of them the fault breaks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from conformance.faults.fault import load_faults
from conformance.faults.kill import command
from conformance.faults.kill.attribution import MUTANTS, Attribution, Bound, Bounds, FlawEffect, lines, read_bounds
from conformance.faults.kill.attribution_run import Choice, attribute, attribute_mutants, effect_of
from conformance.faults.kill.clock import run_jumping
from conformance.faults.kill.setups import SETUPS
from conformance.kit.requirement import Catalogue
from conformance.kit.suite import Suite


def effect(name: str, named: str, failed: str) -> FlawEffect:
    return FlawEffect(name, frozenset(named.split()), {it: f"case.{it}: words" for it in failed.split()})


FOUND = Attribution(
    "aap",
    (
        effect("narrow", "A", "A"),
        effect("wide", "A", "A B C D"),
        effect("right", "A B", "A B"),
        effect("other", "C", "A B C"),
    ),
)


def test_spread_is_how_many_requirements_fail_for_a_fault() -> None:
    assert (FOUND.median, FOUND.p90, FOUND.most) == (2.5, 4, 4)
    assert [item.flaw for item in FOUND.widest] == ["wide", "other", "right", "narrow"]


def test_nine_of_ten_are_within_p90() -> None:
    spreads = Attribution("aap", tuple(effect(f"f{size}", "R0", f"{' '.join(_ids(size))}") for size in range(1, 11)))
    assert (spreads.median, spreads.p90, spreads.most) == (5.5, 9, 10)
    twelve = Attribution("aap", tuple(effect(f"f{size}", "R0", f"{' '.join(_ids(size))}") for size in range(1, 13)))
    assert len(twelve.widest) == 10
    assert twelve.widest[0].flaw == "f12"


def _ids(count: int) -> list[str]:
    return [f"R{place}" for place in range(count)]


def test_precision_is_the_share_of_failures_that_the_faults_break() -> None:
    assert FOUND.precision == 5 / 10
    assert Attribution("aap", (effect("narrow", "A", "A"),)).precision == 1.0
    assert Attribution("aap", (effect("unnoticed", "A", ""),)).precision == 0.0
    assert Attribution("aap", ()).most == 0


def test_what_nobody_says_a_flaw_breaks_does_not_count_for_precision() -> None:
    assert Attribution("aap", (effect("unknown", "", "A B"), effect("narrow", "A", "A"))).precision == 1.0
    assert Attribution("aap", (effect("unknown", "", "A B"),)).precision is None


def test_the_figures_and_the_widest_faults_are_printed() -> None:
    printed = lines([FOUND])
    assert printed[:2] == [
        "dialect  flaws   number  median  p90  max  precision",
        "aap      faults  4       2.5     4    4    0.50",
    ]
    assert printed[3:6] == [
        "aap: failed requirements of the widest faults (*: the flaw does not break it)",
        "    4  wide (breaks A)",
        "       A, B*, C*, D*",
    ]


def test_single_faults_are_printed_with_their_reasons() -> None:
    printed = lines([Attribution("aap", (effect("other", "C", "A C"),))], is_detailed=True)
    assert printed[-3:] == ["    2  other (breaks C)", "       A*: case.A: words", "       C: case.C: words"]


def test_of_many_requirements_only_some_are_printed() -> None:
    printed = lines([Attribution("aap", (effect("many", "A B C D E", "A B C D E"),))])
    assert printed[-2:] == ["    5  many (breaks A, B, C and 2 more)", "       A, B, C, D, E"]


def test_figures_are_held_to_their_bounds_and_else_to_the_aim() -> None:
    assert Bounds().complaints([FOUND]) == [
        "aap: faults: median 2.5, not 1", "aap: faults: p90 4, not 2", "aap: faults: precision 0.50, not 0.90",
    ]  # fmt: skip
    loose = Bounds(bounds={"aap": {"faults": Bound(median=2.5, p90=4, max=3, precision=0.5)}})
    assert loose.complaints([FOUND]) == ["aap: faults: max 4, not 3"]


def test_the_bounds_are_of_dialects_and_kinds_there_are() -> None:
    found = read_bounds().bounds
    assert set(found) <= set(SETUPS)
    assert {kind for kinds in found.values() for kind in kinds} <= {"faults", "mutants"}


def test_a_larger_sample_has_all_of_a_smaller_one() -> None:
    names = [f"fault-{place}" for place in range(50)]
    assert Choice(sample=10).of(names) == Choice(sample=20).of(reversed(names))[:10]
    assert sorted(Choice().of(names)) == sorted(names)
    assert sorted(Choice(only=("fault-3", "fault-4?")).of(names))[:2] == ["fault-3", "fault-40"]


async def test_the_whole_suite_is_put_to_a_fault() -> None:
    found = await effect_of("aap", load_faults("aap")["version-as-text"], within=1.0)
    assert found.named == {"AAP-META-01"}
    assert found.failed >= found.named


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, aap: Suite) -> None:
    """Only the requirements of one section are examined."""
    meta = tuple(item for item in aap.catalogue.requirements if item.id.startswith("AAP-META"))
    some = Catalogue.model_construct(**{**dict(aap.catalogue), "requirements": meta})
    monkeypatch.setattr(
        "conformance.faults.kill.attribution_run.load_suite", lambda dialect: replace(aap, catalogue=some)
    )


@pytest.mark.usefixtures("few")
async def test_every_fault_of_a_sample_is_measured() -> None:
    advanced: list[tuple[str, int, int]] = []
    found = await attribute("aap", Choice(sample=3), lambda *given: advanced.append(given))
    assert [item.flaw for item in found.effects] == Choice(sample=3).of(load_faults("aap"))
    assert advanced == [("aap", 0, 3), ("aap", 1, 0), ("aap", 1, 0), ("aap", 1, 0)]


@pytest.mark.usefixtures("few")
async def test_mutants_are_measured() -> None:
    found = await attribute_mutants("aap", Choice(only=("* GET /meta 200 version",), sample=2), lambda *given: None)
    assert [item.flaw for item in found.effects] == ["drop GET /meta 200 version", "null GET /meta 200 version"]
    assert found.kind == MUTANTS
    assert all("AAP-META-01" in item.failed for item in found.effects)


def test_a_slow_turn_that_lost_its_words_is_waited_for() -> None:
    choice = Choice(only=("lose sse text_delta",), sample=1)
    found = run_jumping(attribute_mutants("aap", choice, lambda *given: None))
    assert [effect.failed for effect in found.effects] == [{"AAP-SSE-02"}]


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--hold",), 1)])
def test_the_command_prints_and_writes_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    async def measured(dialect: str, choice: Choice, *given: object) -> Attribution:
        assert (dialect, choice.sample) == ("aap", 4)
        return FOUND

    monkeypatch.setattr(command, "attribute", measured)
    monkeypatch.setattr(command, "read_bounds", Bounds)
    app = typer.Typer()
    app.command()(command.kill)
    done = CliRunner().invoke(app, ["aap", "--attribution", "--sample", "4", "--out", str(tmp_path), *options])
    assert done.exit_code == code, done.output
    assert "aap      faults  4       2.5     4    4    0.50" in done.output
    assert ("aap: faults: median 2.5, not 1" in done.output) == bool(code)
    written = json.loads((tmp_path / "attribution-aap-faults.json").read_text())
    assert (written["median"], written["precision"]) == (2.5, 0.5)
    assert written["flaws"][0] == {"flaw": "narrow", "spread": 1, "blocked": 0, "named": ["A"], "failed": ["A"]}
