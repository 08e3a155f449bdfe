"""The bill of materials in CycloneDX: what the wheel brings along, with the versions that the tests ran with."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .artefacts import EXTRAS, LOCKED

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
Graph = dict[str, list[str]]
Json = dict[str, object]


def pinned_versions(constraints: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PINNED.findall(constraints)}


def bill_of_materials(root: Path, wheel: Path, when: int) -> str:
    """The whole document as text; the same wheel and constraints give the same text."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    versions = pinned_versions((root / LOCKED).read_text())
    graph = dependencies(project)
    digest = sha256(wheel.read_bytes()).hexdigest()
    own = {
        "type": "application", "bom-ref": _purl(project["name"], project["version"]), "name": project["name"],
        "version": project["version"], "purl": _purl(project["name"], project["version"]),
        "licenses": [{"expression": project["license"]}], "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    refs = {name: _purl(name, versions[name]) for name in graph if name != project["name"]}
    refs[project["name"]] = str(own["bom-ref"])
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, digest)}",
        "metadata": {"timestamp": datetime.fromtimestamp(when, UTC).isoformat(), "component": own},
        "components": [_component(name, versions[name]) for name in sorted(graph) if name != project["name"]],
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted(refs[one] for one in graph[name])} for name in sorted(graph)
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def dependencies(project: Mapping[str, object]) -> Graph:
    """Every package that the project can bring along on this system → the packages that it needs itself."""
    extras = project.get("optional-dependencies", {})
    assert isinstance(extras, dict)
    wanted = [line for name, lines in extras.items() if name in EXTRAS.split(",") for line in lines]
    own = project["dependencies"]
    assert isinstance(own, list)
    graph: Graph = {}
    todo: list[tuple[str, list[Requirement]]] = [
        (str(project["name"]), [Requirement(line) for line in (*own, *wanted)])]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        name, needs = todo.pop()
        known = graph.setdefault(name, [])
        for need in needs:
            if need.marker is not None and not need.marker.evaluate():
                continue
            needed = canonicalize_name(need.name)
            if needed not in (name, *known):
                known.append(needed)
            if (one := (needed, frozenset(need.extras))) not in seen:  # packages may need each other
                seen.add(one)
                todo.append((needed, list(_needs(needed, need.extras))))
    return graph


def _needs(name: str, extras: set[str]) -> Iterator[Requirement]:
    """What an installed package needs on this system with these extras."""
    for line in requires(name) or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            need.marker = None
            yield need


def _component(name: str, version: str) -> Json:
    purl = _purl(name, version)
    found: Json = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if license := _license(name):
        found["licenses"] = [license]
    return found


def _license(name: str) -> Json | None:
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    if "License-Expression" in about:
        return {"expression": about["License-Expression"]}
    words = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    return {"license": {"name": words[0]}} if words else None


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{canonicalize_name(name)}@{version}"
