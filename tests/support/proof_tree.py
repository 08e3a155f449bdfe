"""A tree with proofs of a few lines, for tests of `make prove`."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

PASSES = "print('all is well')"
FAILS = "import sys; print('one was lost'); sys.exit(3)"


class ProofTree:
    """A root with tests/prove/<name> folders in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tests/prove").mkdir(parents=True)

    def folder(self, name: str) -> Path:
        folder = self.root / "tests/prove" / name
        folder.mkdir(exist_ok=True)
        return folder

    def add(self, name: str, program: str = PASSES, *, file: str = "__main__.py", extra: Sequence[str] = ()) -> Path:
        """A proof that is this program; `extra` are further lines of its proof.yaml, which win over the usual ones."""
        folder = self.folder(name)
        (folder / file).write_text(dedent(program))
        said = {"sentence": f"The {name} holds.", "minutes": "1", "measures": "false"}
        said |= dict(line.split(": ", 1) for line in extra)
        (folder / "proof.yaml").write_text("".join(f"{key}: {value}\n" for key, value in said.items()))
        return folder

    def printed(self, name: str) -> str:
        """What the last run of a proof has printed."""
        return (self.root / ".prove" / f"{name}.log").read_text()
