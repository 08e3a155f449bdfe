"""The bill of materials has what the wheel brings along, with the pinned versions, and is the same each time."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from deploy.release.sbom import bill_of_materials, dependencies, pinned_versions

ROOT = Path(__file__).parents[3]
WHEN = 1_700_000_000


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    wheel = tmp_path_factory.mktemp("dist") / "dragoman.whl"
    wheel.write_bytes(b"a wheel")
    return bill_of_materials(ROOT, wheel, WHEN)


def test_every_component_is_pinned_and_none_is_a_tool_of_ours(text: str) -> None:
    found = {one["name"]: one["version"] for one in json.loads(text)["components"]}
    assert found.items() <= pinned_versions((ROOT / "constraints.txt").read_text()).items()
    assert {"aiohttp", "redis", "hiredis", "mcp", "cffi"} <= found.keys(), "of the project, its extras, and theirs"
    assert found.keys().isdisjoint({"pytest", "ruff", "mypy", "uv", "build", "dragoman"})


def test_every_direct_dependency_is_there(text: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[\s\[<>=!~;]", line)[0].lower() for line in project["dependencies"]}
    [own] = [one for one in json.loads(text)["dependencies"] if one["ref"].startswith("pkg:pypi/dragoman@")]
    direct = {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in own["dependsOn"]}
    assert names <= direct


def test_references_lead_somewhere(text: str) -> None:
    bill = json.loads(text)
    refs = [one["bom-ref"] for one in (bill["metadata"]["component"], *bill["components"])]
    assert len(refs) == len(set(refs))
    assert {one["ref"] for one in bill["dependencies"]} == set(refs)
    assert {ref for one in bill["dependencies"] for ref in one["dependsOn"]} <= set(refs)


def test_the_same_wheel_has_the_same_bill(text: str, tmp_path: Path) -> None:
    wheel = tmp_path / "dragoman.whl"
    wheel.write_bytes(b"a wheel")
    assert bill_of_materials(ROOT, wheel, WHEN) == text
    wheel.write_bytes(b"another")
    other = json.loads(bill_of_materials(ROOT, wheel, WHEN))
    assert other["serialNumber"] != json.loads(text)["serialNumber"]


def test_packages_that_need_each_other_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"one": ["two[more]"], "two": ["one", 'two[more]; extra == "more"', 'three; extra == "more"'], "three": []}
    monkeypatch.setattr("deploy.release.sbom.requires", needs.get)
    project = {"name": "ours", "dependencies": ["one"], "optional-dependencies": {"test": ["four"]}}
    assert dependencies(project) == {"ours": ["one"], "one": ["two"], "two": ["one", "three"], "three": []}
