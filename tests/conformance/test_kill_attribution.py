"""Attribution: how many requirements fail for a fault, and how many of them the fault breaks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from conformance.faults.fault import load_faults
from conformance.faults.kill import command
from conformance.faults.kill.attribution import Attribution, FaultEffect, attribute, chosen, effect_of, lines
from conformance.kit.requirement import Catalogue
from conformance.kit.suite import Suite


def effect(name: str, named: str, failed: str) -> FaultEffect:
    return FaultEffect(name, frozenset(named.split()), frozenset(failed.split()))


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
    assert [item.fault for item in FOUND.widest] == ["wide", "other", "right", "narrow"]


def test_nine_of_ten_are_within_p90() -> None:
    spreads = Attribution("aap", tuple(effect(f"f{size}", "R0", f"{' '.join(_ids(size))}") for size in range(1, 11)))
    assert (spreads.median, spreads.p90, spreads.most) == (5.5, 9, 10)
    twelve = Attribution("aap", tuple(effect(f"f{size}", "R0", f"{' '.join(_ids(size))}") for size in range(1, 13)))
    assert len(twelve.widest) == 10
    assert twelve.widest[0].fault == "f12"


def _ids(count: int) -> list[str]:
    return [f"R{place}" for place in range(count)]


def test_precision_is_the_share_of_failures_that_the_faults_break() -> None:
    assert FOUND.precision == 5 / 10
    assert Attribution("aap", (effect("narrow", "A", "A"),)).precision == 1.0
    assert Attribution("aap", (effect("unnoticed", "A", ""),)).precision == 0.0
    assert Attribution("aap", ()).most == 0


def test_the_figures_and_the_widest_faults_are_printed() -> None:
    printed = lines([FOUND])
    assert printed[:2] == [
        "dialect  faults  median  p90  max  precision",
        "aap      4       2.5     4    4    0.50",
    ]
    assert printed[3:5] == ["aap: failed requirements of the widest faults", "    4  wide (breaks A)"]


def test_of_many_requirements_only_some_are_printed() -> None:
    printed = lines([Attribution("aap", (effect("many", "A B C D E", "A B C D E"),))])
    assert printed[-1] == "    5  many (breaks A, B, C and 2 more)"


def test_a_larger_sample_has_all_of_a_smaller_one() -> None:
    names = [f"fault-{place}" for place in range(50)]
    assert chosen(names, 10) == chosen(reversed(names), 20)[:10]
    assert sorted(chosen(names, None)) == sorted(names)


async def test_the_whole_suite_is_put_to_a_fault() -> None:
    found = await effect_of("aap", load_faults("aap")["version-as-text"], within=1.0)
    assert found.named == {"AAP-META-01"}
    assert found.failed >= found.named


async def test_every_fault_of_a_sample_is_measured(monkeypatch: pytest.MonkeyPatch, aap: Suite) -> None:
    meta = tuple(item for item in aap.catalogue.requirements if item.id.startswith("AAP-META"))
    few = Catalogue.model_construct(**{**dict(aap.catalogue), "requirements": meta})
    monkeypatch.setattr("conformance.faults.kill.attribution.load_suite", lambda dialect: replace(aap, catalogue=few))
    advanced: list[tuple[str, int, int]] = []
    found = await attribute("aap", 3, 1.0, 2, lambda *given: advanced.append(given))
    assert [item.fault for item in found.effects] == chosen(load_faults("aap"), 3)
    assert advanced == [("aap", 0, 3), ("aap", 1, 0), ("aap", 1, 0), ("aap", 1, 0)]


def test_the_command_prints_and_writes_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def measured(dialect: str, sample: int | None, *given: object) -> Attribution:
        assert (dialect, sample) == ("aap", 4)
        return FOUND

    monkeypatch.setattr(command, "attribute", measured)
    app = typer.Typer()
    app.command()(command.kill)
    done = CliRunner().invoke(app, ["aap", "--attribution", "--sample", "4", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "aap      4       2.5     4    4    0.50" in done.output
    written = json.loads((tmp_path / "attribution-aap.json").read_text())
    assert (written["median"], written["precision"]) == (2.5, 0.5)
    assert written["faults"][0] == {"fault": "narrow", "spread": 1, "named": ["A"], "failed": ["A"]}
