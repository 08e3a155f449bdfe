"""The house knows no dialect; every module says its one sentence; every module has its test."""

import re
from pathlib import Path

from adapters import known_dialects

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for room in ("gateway", "adapters", "mappings", "conformance")
                 for path in (ROOT / room).rglob("*.py"))
TESTS = [(path.stem, path.read_text()) for path in sorted((ROOT / "tests").rglob("test_*.py"))]

TESTED_BY = {
    "gateway/ports/*.py": "tests/contract/test_dialects.py",
    "gateway/backends/kind.py": "tests/backends/test_registry.py",
    "gateway/cli/common.py": "tests/cli/test_commands.py",
    "gateway/backends/acts*.py": "tests/backends/test_demo.py",
    "gateway/backends/stage.py": "tests/backends/test_demo.py",
    "gateway/cluster/*.py": "tests/cluster/test_sessions.py",
    "gateway/log/segments.py": "tests/log/test_logs.py",
    "gateway/config/*.py": "tests/config/test_load_config.py",
    "mappings/language/*.py": "tests/mappings/test_language_diagnostics.py",
    "conformance/kit/items.py": "tests/conformance/test_plugin.py",
    "conformance/aap/*.py": "tests/conformance/test_faults_aap.py",
    "conformance/cas/*.py": "tests/conformance/test_cas_faults.py",
    "conformance/blade/*.py": "tests/conformance/test_faults_blade.py",
    "conformance/zenflux/*.py": "tests/conformance/test_faults_zenflux.py",
    "conformance/*/offline/*.py": "tests/conformance/test_offline_judging.py",
    "conformance/faults/*.py": "tests/conformance/test_faults_aap.py",
    "conformance/faults/cas/*.py": "tests/conformance/test_cas_faults.py",
    "conformance/faults/blade/*.py": "tests/conformance/test_faults_blade.py",
    "conformance/faults/zenflux/*.py": "tests/conformance/test_faults_zenflux.py",
}
"""Modules whose test goes by another name: a room that is tested through its door."""


OPENING = re.compile(r'(#[^\n]*\n|\s)*"""\s*[^\s"][^\n]*?[.:?]("""|\n)')
"""A docstring whose first line ends as a sentence does."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_house_knows_no_dialect_by_name() -> None:
    dialect = re.compile(rf"\b({'|'.join(known_dialects())})\b", re.IGNORECASE)
    house = [path for path in SOURCES if name(path).startswith("gateway/")]
    assert {name(path): found for path in house if (found := dialect.findall(path.read_text()))} == {}


def test_a_module_opens_with_its_sentence() -> None:
    assert len(SOURCES) > 500
    speechless = [name(path) for path in SOURCES if not OPENING.match(path.read_text())]
    assert speechless == [], "say what the module is for, in a whole sentence on the first line"


def test_a_module_has_its_test() -> None:
    untested = [name(path) for path in SOURCES if not path.name.startswith("__") and not _is_tested(path)]
    assert untested == [], "no test file is named after it, and none imports it"


def _is_tested(path: Path) -> bool:
    given = next((test for pattern, test in TESTED_BY.items() if path.relative_to(ROOT).match(pattern)), None)
    if given is not None:
        return (ROOT / given).is_file()
    room, module = path.parent.name, path.stem
    imports = re.compile(rf"(from|import) [\w.]*\b{room}(\.{module}\b| import [^\n]*\b{module}\b)|{room}\.{module}\b")
    return any(module in stem for stem, _ in TESTS) or any(
        module in text and room in text and imports.search(text) for _, text in TESTS)


def test_modules_tested_under_another_name_still_exist() -> None:
    assert [pattern for pattern in TESTED_BY if not list(ROOT.glob(pattern))] == []
