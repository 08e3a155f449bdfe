"""A user's module is read again when it has changed, with what it imports from beside it, and kept when broken."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gateway.backends import user_modules
from gateway.backends.user_modules import load_user_module, module_files
from gateway.composition import load_components
from gateway.config import load_config
from gateway.errors import NotFound
from gateway.yaml_positions import Problems
from tests.support.gateway_server import PLAIN


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path, modules, read = sys.path[:], set(sys.modules), dict(user_modules._LOADED)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("changing_"):
            del sys.modules[name]
    user_modules._LOADED.clear()
    user_modules._LOADED.update(read)


def rewrite(file: Path, text: str) -> None:
    """Other words of the same size, in the same second as before: only a close look shows the change."""
    stat = file.stat()
    file.write_text(text)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns // 10**9 * 10**9 + (stat.st_mtime_ns + 1) % 10**9))


def test_what_has_not_changed_is_not_read_again(folder: Path) -> None:
    (folder / "changing_one.py").write_text("x = object()\n")
    first = load_user_module("changing_one", folder)
    assert load_user_module("changing_one", folder) is first
    assert first.files == (folder / "changing_one.py",)
    assert not first.is_stale


def test_what_has_changed_is_read_again_and_the_old_lives_on(folder: Path) -> None:
    file = folder / "changing_two.py"
    file.write_text("x = 1\n\ndef f():\n    return x\n")
    old = load_user_module("changing_two", folder)
    rewrite(file, "x = 2\n\ndef f():\n    return x\n")
    assert old.is_stale
    new = load_user_module("changing_two", folder)
    assert (old.module.f(), new.module.f()) == (1, 2)
    assert sys.modules["changing_two"] is new.module


def test_what_is_imported_from_beside_is_read_again_too(folder: Path) -> None:
    (folder / "changing_three.py").write_text("import json\nfrom changing_four import x\n")
    (folder / "changing_four.py").write_text("import changing_five\nx = changing_five.x\n")
    (folder / "changing_five.py").write_text("x = 1\n")
    old = load_user_module("changing_three", folder)
    assert {file.stem for file in old.files} == {"changing_three", "changing_four", "changing_five"}
    json = sys.modules["json"]
    rewrite(folder / "changing_five.py", "x = 2\n")
    assert (old.module.x, load_user_module("changing_three", folder).module.x) == (1, 2)
    assert sys.modules["json"] is json


def test_a_package_has_its_own_beside(folder: Path) -> None:
    room = folder / "changing_room"
    room.mkdir()
    (room / "__init__.py").touch()
    (folder / "words.py").touch()
    (room / "agent.py").write_text(
        "import words\nfrom . import words\nfrom .more import x\nfrom changing_room import less\n")
    for name in ("words", "more", "less"):
        (room / f"{name}.py").write_text("x = 1\n")
    files = module_files("changing_room.agent", room / "agent.py", folder)
    assert {file.relative_to(folder) for file in files} == {
        Path("changing_room", f"{name}.py") for name in ("agent", "words", "more", "less")}


def test_a_broken_one_leaves_everything_as_it_was(folder: Path) -> None:
    file = folder / "changing_six.py"
    file.write_text("x = 1\n")
    old = load_user_module("changing_six", folder)
    for broken, place in (("x = 1\n  y = 2\n", 2), ("x = 1\n\nraise KeyError('x')\n", 3)):
        file.write_text(broken)
        with pytest.raises(Problems) as caught:
            load_user_module("changing_six", folder)
        [problem] = caught.value.problems
        assert (problem.position.file, problem.position.line) == (str(file), place)
        assert sys.modules["changing_six"] is old.module
    file.write_text("x = 3\n")
    assert load_user_module("changing_six", folder).module.x == 3


def test_what_is_not_there_is_told(folder: Path) -> None:
    for name in ("changing_nowhere", "changing_nowhere.at.all"):
        with pytest.raises(NotFound, match=f"No module named '{name}'"):
            load_user_module(name, folder)


CLASS = "class Agent:\n    async def run(self, turn):\n        yield {0}\n\n    async def close(self):\n        pass\n"


@pytest.mark.parametrize(("agent", "code"), [
    ({"backend": "changing_class:Agent"}, CLASS),
    ({"backend": "python", "settings": {"agent": "changing_class:reply"}}, "def reply():\n    return '{0}'\n"),
])
def test_agents_whose_code_has_changed_are_made_anew(folder: Path, agent: dict, code: str) -> None:
    config, file = folder / "config.yaml", folder / "changing_class.py"
    config.write_text(yaml.safe_dump({**PLAIN, "agents": {"mine": agent, "demo": {"backend": "demo"}}}))
    file.write_text(code.format(1))
    first = load_components(load_config(config))
    assert first.made["mine"].module is not None
    assert first.made["mine"].module.files == (file,)
    assert first.made["demo"].module is None
    second = load_components(load_config(config), first)
    assert second.backends == first.backends
    file.write_text(code.format(22))
    assert first.made["mine"].module.is_stale
    third = load_components(load_config(config), second)
    assert third.backends["mine"] is not first.backends["mine"]
    assert third.backends["demo"] is first.backends["demo"]
    assert third.made["mine"].module is not None
    assert not third.made["mine"].module.is_stale
    assert first.made["mine"].module.is_stale, "it was loaded again"
    file.write_text("def broken(:\n")
    with pytest.raises(Problems, match=f"{file}:1:12: module 'changing_class' cannot be read"):
        load_components(load_config(config), third)
