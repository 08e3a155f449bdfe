"""YAML documents read into pydantic models, with every problem named at once."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


class DocumentError(Exception):
    """A file of the examiners or of their user does not say what it must."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        super().__init__("\n".join(f"{path}: {problem}" for problem in problems))


def read_document(path: Path, model: type[Model]) -> Model:
    """The document at `path` as a `model`; DocumentError names all that is wrong with it."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DocumentError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise DocumentError(path, [f"is not UTF-8: {error.reason}"]) from None
    except yaml.YAMLError as error:
        raise DocumentError(path, [f"is not YAML: {_one_line(error)}"]) from None
    if not isinstance(found, dict):
        raise DocumentError(path, [f"must be a mapping, not {type(found).__name__}"])
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise DocumentError(path, [_problem(item["loc"], item["msg"]) for item in error.errors()]) from None


def _problem(place: tuple[int | str, ...], message: str) -> str:
    where = ".".join(str(step) for step in place)
    return f"{where}: {message}" if where else message


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
