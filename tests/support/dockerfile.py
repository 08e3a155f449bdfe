"""A Dockerfile as a list of instructions, by stage."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str

    @property
    def sources(self) -> list[str]:
        """What COPY takes from the context; nothing if it takes from another stage."""
        words = shlex.split(self.rest)
        return [] if any(word.startswith("--from=") for word in words) else words[:-1]


@dataclass
class Stage:
    image: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [one.rest for one in self.instructions if one.word == word]


def read_dockerfile(path: Path) -> list[Stage]:
    """The stages of the file; a line that is no instruction fails."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        word, _, rest = line.partition(" ")
        assert re.fullmatch(r"[A-Z]+", word), line
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            stages.append(Stage(image, name))
        else:
            stages[-1].instructions.append(Instruction(word, rest.strip()))
    return stages
