"""A proof is a folder: its proof.yaml says what is proven, and its pytest files or its __main__.py prove it."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

FOLDER = Path("tests/prove")
HANG = 1800
"""Seconds after which a test of a proof counts as hung."""


class InvalidProofs(Exception):
    """Folders that are no proofs, one problem each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))


class Proof(BaseModel):
    """What proof.yaml says, and the commands that follow from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    root: Path
    sentence: str = Field(min_length=10)
    """What is proven, in one sentence."""
    minutes: float = Field(gt=0)
    """How long the proof takes on two cores, roughly."""
    measures: bool
    """Whether the result depends on how fast the machine is: such a proof is not part of the sample."""
    sample: str | None = None
    """Arguments of the short run; "" if the proof is short as it is."""
    workers: int = Field(default=0, ge=0)
    """In how many processes pytest runs the tests; 0: in its own."""
    only_if_named: str | None = None
    """Why the proof runs only if --only names it."""
    whole: str | None = None
    """The module (and arguments) of the longest form, which --whole runs."""

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def has_tests(self) -> bool:
        return any((self.root / self.folder).rglob("test_*.py"))

    def command(self, minutes: float, further: Sequence[str] = ()) -> list[str]:
        """The proof as it is meant to be run."""
        if self.has_tests:
            return [*self._pytest, *self._places(further), *further]
        return [*self._program, "--minutes", f"{minutes:g}", *further]

    def sample_command(self, further: Sequence[str] = ()) -> list[str]:
        """The short run of a proof that has one."""
        words = [*shlex.split(self.sample or ""), *further]
        return [*self._pytest, *self._places(words), *words] if self.has_tests else [*self._program, *words]

    def whole_command(self, further: Sequence[str] = ()) -> list[str]:
        """The longest form of a proof that has one."""
        return [sys.executable, "-m", *shlex.split(self.whole or ""), *further]

    @property
    def _pytest(self) -> list[str]:
        return [sys.executable, "-m", "pytest", "-n", str(self.workers), f"--timeout={HANG}"]

    @property
    def _program(self) -> list[str]:
        return [sys.executable, "-m", ".".join(self.folder.parts)]

    def _places(self, words: Sequence[str]) -> list[str]:
        """The folder, unless the words themselves name files of it."""
        return [] if any(word.startswith(f"{self.folder}/") for word in words) else [str(self.folder)]


def find_proofs(root: Path) -> list[Proof]:
    """All proofs, in the order of their names; raises Unreadable with everything that is wrong with them."""
    proofs, problems = [], []
    for folder in sorted(path for path in (root / FOLDER).iterdir() if any(path.glob("*.py"))):
        try:
            proofs.append(_read(root, folder))
        except InvalidProofs as error:
            problems.append(f"{FOLDER / folder.name}: {error}")
    if problems:
        raise InvalidProofs(problems)
    return proofs


def _read(root: Path, folder: Path) -> Proof:
    file = folder / "proof.yaml"
    if not file.is_file():
        raise InvalidProofs(["has no proof.yaml; write one with: sentence, minutes, measures (and sample, workers)"])
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
        proof = Proof.model_validate({**said, "name": folder.name, "root": root})
    except (yaml.YAMLError, TypeError) as error:
        raise InvalidProofs([f"proof.yaml cannot be read: {error}"]) from None
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
        raise InvalidProofs([f"proof.yaml: {'; '.join(wrong)}"]) from None
    if not proof.has_tests and not (folder / "__main__.py").is_file():
        raise InvalidProofs(["has neither test_*.py nor __main__.py"])
    return proof
