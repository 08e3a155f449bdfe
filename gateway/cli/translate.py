"""`dragoman translate`: translates a recorded stream of one dialect into another dialect."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from .options import DIALECT_NAMES, fail, report_errors

if TYPE_CHECKING:
    from gateway.ports import Dialect
    from gateway.translate import LossCounter, Translation

EXIT_LOST = 3
"""The exit code of `--strict` if something was lost."""
CANONICAL = "canonical"
CHUNK = 64 * 1024


def translate(
    source: Annotated[
        str, typer.Option("--from", metavar="NAME", help=f"The dialect of the recording: {DIALECT_NAMES}, canonical.")
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="NAME", help=f"The dialect to write: {DIALECT_NAMES}, canonical.")
    ],
    file: Annotated[Path | None, typer.Argument(help="The recording; standard input if none is given.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A new file to write.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Translate only this session.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not report losses.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 if anything was lost.")] = False,
) -> None:
    """Translate recorded streams of one dialect into streams of another, frame by frame.

    Example: [b]dragoman translate --from ONE --to ANOTHER recording.jsonl --out translated[/b]

    The input may be server-sent events, JSON frames (one per line), packets of Socket.IO, or a file of `dragoman
    record`. The output is what a client of the other dialect would have received. `canonical` stands for the lines of
    `dragoman log export`. Losses are reported on standard error, and counted.

    The exit code is 0, 2 if the recording cannot be read (the part that was understood is written) or nothing in it
    was understood, and 3 if --strict is given and something was lost.
    """
    with report_errors():
        spoken, written = _dialect(source, is_source=True), _dialect(target, is_source=False)
        with _source(file) as incoming, _target(out) as outgoing:
            losses, translation = _make_translation(spoken, written, session)
            was_there = False
            try:
                was_there = _run(translation, incoming, outgoing)
            except BrokenPipeError:
                discard_output()
    if not quiet:
        for line in (*translation.remarks.lines(), *losses.lines()):
            typer.echo(line, err=True)
    if was_there and not translation.remarks.records:
        fail(f"the recording has no frames of session '{session}'" if session else
             f"no frame of the recording was understood; is it {source}?")
    raise typer.Exit(EXIT_LOST if strict and losses.is_lossy else 0)


def _dialect(name: str, *, is_source: bool) -> "Dialect | None":
    """Return the dialect of this name; None for canonical records."""
    from adapters import known_dialects
    from gateway.backends.remote import find_dialect

    if name == CANONICAL:
        return None
    there = [one for one in known_dialects() if not is_source or find_dialect(one).decoder is not None]
    if name not in there:
        fail(f"there is no dialect '{name}' to translate {'from' if is_source else 'to'}; "
             f"there are: {', '.join(there)}, {CANONICAL}")
    return find_dialect(name)


def _make_translation(
    source: "Dialect | None", target: "Dialect | None", session: str | None
) -> "tuple[LossCounter, Translation]":
    import time

    from gateway.ids import make_mint
    from gateway.translate import DialectWriter, LossCounter, RecordWriter, Translation
    from mappings.language import builtin_table

    tables = [builtin_table(dialect) if dialect is not None else None for dialect in (source, target)]
    losses = LossCounter(*tables)
    writing = (
        RecordWriter() if target is None or tables[1] is None else DialectWriter(target, tables[1], losses)
    )
    return losses, Translation(source, tables[0], writing, clock=time.time, mint=make_mint(), only=session)


# -- in chunks --------------------------------------------------------------------------------------------------------

def _run(translation: "Translation", incoming: BinaryIO, outgoing: BinaryIO) -> bool:
    """Write the translation of each chunk at once; return False if there was no input.

    If a chunk cannot be read, whatever is open is closed before the error is raised.
    """
    from gateway.translate import UnreadableRecording

    was_there = False
    try:
        for chunk in _chunks(incoming, translation):
            was_there = was_there or bool(chunk)
            _write(outgoing, translation.feed(chunk) if chunk else translation.rest())
        _write(outgoing, translation.end())
    except UnreadableRecording:
        _write(outgoing, translation.close())
        raise
    return was_there


def _write(outgoing: BinaryIO, pieces: "Iterator[bytes] | list[bytes]") -> None:
    for piece in pieces:
        if piece:
            outgoing.write(piece)
    outgoing.flush()


def _chunks(incoming: BinaryIO, translation: "Translation") -> Iterator[bytes]:
    """Yield input as soon as it arrives; an empty chunk means that a delayed frame is due and no input has arrived."""
    import time

    read = getattr(incoming, "read1", incoming.read)
    while True:
        due = translation.deadline
        if due is not None and not _is_readable(incoming, min(1.0, max(0.0, due - time.time()))):
            yield b""
        chunk = read(CHUNK)
        if not chunk:
            return
        yield chunk


def _is_readable(incoming: BinaryIO, seconds: float) -> bool:
    """Say whether the input can be read within so many seconds; an object that is not a file always can."""
    import io
    import select

    try:
        return bool(select.select([incoming.fileno()], [], [], seconds)[0])
    except (io.UnsupportedOperation, ValueError):
        return True


# -- files ------------------------------------------------------------------------------------------------------------

@contextmanager
def _source(file: Path | None) -> Iterator[BinaryIO]:
    if file is None:
        if sys.stdin.isatty():
            fail("name a recording, or send one: dragoman translate --from D --to D < recording")
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    with opened:
        yield opened


@contextmanager
def _target(out: Path | None) -> Iterator[BinaryIO]:
    """Open standard output, or a new file that keeps what was written before an error."""
    if out is None:
        yield sys.stdout.buffer
        return
    try:
        opened = out.open("xb")
    except FileExistsError:
        fail(f"{out} exists already; remove it, or choose another name")
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror}")
    with opened:
        yield opened


def discard_output() -> None:
    """Discard further output: the reader has closed the pipe."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
