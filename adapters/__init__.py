"""The dialects, a package each: they know the core, and the core does not know them."""

from pathlib import Path


def known_dialects() -> list[str]:
    """The dialects there are: the folders of this room."""
    return sorted(folder.name for folder in Path(__file__).parent.iterdir() if (folder / "__init__.py").is_file())
