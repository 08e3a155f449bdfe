"""Commands that write files to begin with: `dragoman init` and `dragoman new-dialect`."""

import keyword
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from .options import CONFIG, fail


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = CONFIG,
) -> None:
    """Write a config.yaml that serves the demo agent and explains every setting.

    Example: [b]dragoman init && dragoman serve[/b]

    A file that exists is never overwritten.
    """
    from gateway.config import TEMPLATE

    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        fail(f"{file} exists and was left as it is; name another file, or edit this one")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    typer.echo(f"{file} is written; edit it, then: dragoman serve" + ("" if file == CONFIG else f" --config {file}"))


HERE = Path(__file__).parent
SKELETON, CODE = HERE / "skeleton", HERE / "skeleton_code"
"""Files by their places in the folder; `@name@` in a path or a text is the name of the dialect."""
SUFFIX = ".tmpl"
NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
SCHEMA = Path("mappings", "table.schema.json")
EXPLAINED = {
    "mappings": "the table: its routes, its messages, its bodies, its frames",
    "adapters": "code, for what a table cannot say",
    "conformance": "what servers of the dialect are held to, with cases",
    "conformance/faults": "a small correct server, and the faults that prove the cases",
    "docs": "the page of the dialect",
}


def new_dialect(
    name: Annotated[str, typer.Argument(help="The name of the dialect: a short word in lower case, such as nova.")],
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path(),
    code: Annotated[
        bool, typer.Option("--code", help="Write an adapter, too: code for what a table cannot say.")
    ] = False,
) -> None:
    """Write the files of a new dialect: a table, cases and faults, and a page.

    Example: [b]dragoman new-dialect nova --folder my-dialects[/b]

    The dialect serves text turns at once. A file that exists is never overwritten.
    """
    _check_name(name)
    files = dict(skeleton_files(name, code=code))
    if there := [str(folder / path) for path in files if (folder / path).exists()]:
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        fail(f"nothing was written, because these files exist: {', '.join(there[:3])}{more}")
    try:
        _write(folder, files)
    except OSError as error:
        fail(f"{error.filename or folder} cannot be written: {error.strerror}")
    for line in _next_steps(name, folder, files):
        typer.echo(line)


def skeleton_files(name: str, *, code: bool = False) -> Iterator[tuple[Path, str]]:
    """The files of a dialect of this name, with their contents."""
    letters = re.sub(r"[^a-z]", "", name)
    words = {"@name@": name, "@Name@": name.replace("_", " ").title().replace(" ", ""), "@NAME@": letters.upper()}

    def filled(text: str) -> str:
        return re.sub("|".join(words), lambda found: words[found[0]], text)

    for home in (SKELETON, *((CODE,) if code else ())):
        for path in sorted(home.rglob(f"*{SUFFIX}")):
            place = filled(str(path.relative_to(home))).removesuffix(SUFFIX)
            yield Path(place), filled(path.read_text(encoding="utf-8"))


def _check_name(name: str) -> None:
    from adapters import known_dialects

    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        fail(f"'{name}' cannot be the name of a dialect: it is a word of small letters, digits and '_', such as nova")
    taken = {path.name for room in ("adapters", "mappings", "conformance") for home in _homes(room)
             for path in Path(home).glob("*") if path.is_dir()}
    if name in taken or name in known_dialects():
        fail(f"the name '{name}' is taken; take another one")


def _homes(room: str) -> list[str]:
    from importlib import import_module
    from importlib.util import find_spec

    return list(import_module(room).__path__) if find_spec(room) is not None else []


def _write(folder: Path, files: dict[Path, str]) -> None:
    from mappings.language import schema_text

    schema = {} if (folder / SCHEMA).exists() else {SCHEMA: schema_text()}
    for path, text in {**files, **schema}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with (folder / path).open("x", encoding="utf-8") as written:
            written.write(text)


def _next_steps(name: str, folder: Path, files: dict[Path, str]) -> Iterator[str]:
    for place, words in EXPLAINED.items():
        inside = [path for path in files if _room(path) == place]
        if inside:
            top = inside[0] if len(inside) == 1 else Path(place, name)
            yield f"{folder / top!s:<36} {words}"
    yield ""
    yield "Next, in config.yaml (`dragoman init` writes one):"
    yield f"  dialects: {{{name}: }}"
    yield f"  dialect_folders: [{folder}]"
    yield "Then:"
    yield f"  dragoman check --explain {name}"
    yield "  dragoman serve"
    yield f"  dragoman conform {name} http://127.0.0.1:18900/{name} --folder {folder}"


def _room(path: Path) -> str:
    parts = path.parts[:-1]
    return "/".join(parts[:2]) if parts[:2] == ("conformance", "faults") else parts[0]
