"""The dialects, a package each, or a table alone: they know the core, and the core does not know them."""

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.ports import Dialect


def known_dialects() -> list[str]:
    """The dialects there are: those that have a table, wherever the path of the tables leads."""
    return sorted({table.stem for home in _homes_of_tables() for table in Path(home).glob("*.yaml")})


def load_dialect(name: str) -> "Dialect":
    """A known dialect: that of its package or, if it has none, the one that its table makes."""
    if any((Path(home) / name / "__init__.py").is_file() for home in __path__):
        found: Dialect = import_module(f"adapters.{name}").DIALECT
        return found
    from adapters.plain import plain_dialect
    from mappings.language import builtin_path

    return plain_dialect(builtin_path(name))


def add_dialect_folders(folders: Iterable[Path]) -> None:
    """From now on, dialects are also found in these folders: `mappings/NAME.yaml`, and code in `adapters/NAME`."""
    for folder in folders:
        for package in ("adapters", "mappings"):
            path, inside = import_module(package).__path__, str(folder / package)
            if inside not in path:
                path.append(inside)


def _homes_of_tables() -> list[str]:
    """The folders of tables; the package that reads tables is not imported for that."""
    loaded = sys.modules.get("mappings")
    if loaded is not None:
        return list(loaded.__path__)
    spec = find_spec("mappings")
    return list(spec.submodule_search_locations or ()) if spec is not None else []
