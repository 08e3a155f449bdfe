"""The command line of the recorder: `record DIALECT URL --out FILE`."""

from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from yarl import URL

    from conformance.recording.recorder import Recorder

USAGE_ERROR = 2
EVERY = 1.0
EXAMPLE = """Stand before a server, pass everything through, and write down what crosses the wire.

Example: dragoman record aap http://localhost:8080/aap --out traffic.jsonl

Point the client at the address that is printed, use it, and end with Ctrl-C. Keys, tokens, cookies, passwords and the
values of environment variables are struck out before anything is written. The file can then be judged without the
server: dragoman conform aap --transcript traffic.jsonl"""


def record(
    dialect: Annotated[str, typer.Argument(help="The dialect that is spoken, such as aap.")],
    url: Annotated[str, typer.Argument(help="Where the server is, such as http://localhost:8080/aap.")],
    out: Annotated[Path, typer.Option(help="The file to write (JSON lines).")],
    listen: Annotated[str, typer.Option(help="Where clients are to connect: HOST:PORT.")] = "127.0.0.1:8099",
    secret: Annotated[list[str] | None, typer.Option(help="Also strike this out; may be repeated.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if there is one.")] = False,
) -> None:
    """The function behind the command; see EXAMPLE for what it says of itself."""
    import asyncio

    from yarl import URL

    from conformance.kit.secrets import Redactor
    from conformance.kit.suite import dialects
    from conformance.recording.recorder import Recorder

    if dialect not in dialects():
        raise _unusable(f"there is no dialect {dialect!r}; there is: {', '.join(dialects())}")
    try:
        target = URL(url.rstrip("/"))
        is_address = target.origin().scheme in ("http", "https")
    except ValueError:
        is_address = False
    if not is_address:
        raise _unusable(f"{url!r} is not an http or https address")
    host, port = _place(listen)
    with _file(out, overwrite) as file:
        recorder = Recorder(file, dialect, target, Redactor(secret or []))
        try:
            asyncio.run(_record(target, recorder, host, port))
        except OSError as error:
            words = f"cannot listen at {listen}: {error.strerror or error}"
            raise _unusable(f"{words}; --listen HOST:PORT takes another") from None
        recorder.stopped()
    typer.echo(f"\n{_counts(recorder)} in {out}")
    typer.echo(f"judge it with: dragoman conform {dialect} --transcript {out}")


record.__doc__ = EXAMPLE


async def _record(target: "URL", recorder: "Recorder", host: str, port: int) -> None:
    """Relay until the process is told to stop."""
    import asyncio
    import signal

    from conformance.recording.relay import relaying

    leaving = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, leaving.set)
    async with relaying(target, recorder, host, port) as address:
        typer.echo(f"recording {target} - point the client to {address}")
        typer.echo("end with Ctrl-C")
        told = ""
        while not leaving.is_set():
            try:
                async with asyncio.timeout(EVERY):
                    await leaving.wait()
            except TimeoutError:
                told = _tell(recorder, told)


def _tell(recorder: "Recorder", told: str) -> str:
    """Print the number of recorded exchanges if it has changed."""
    counts = _counts(recorder)
    if counts != told:
        typer.echo(f"  {counts}")
    return counts


def _counts(recorder: "Recorder") -> str:
    return f"{recorder.exchanges} exchanges, {recorder.messages} events and frames, {recorder.size} bytes"


def _place(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise _unusable(f"--listen {listen!r}: say HOST:PORT, such as 127.0.0.1:8099")
    return host.strip("[]"), int(port)


def _file(path: Path, overwrite: bool) -> IO[bytes]:
    from conformance.kit.output_folders import make_folder

    try:
        make_folder(path.parent, _say)
        return path.open("wb" if overwrite else "xb")
    except FileExistsError:
        raise _unusable(f"{path} exists; take another name, or add --overwrite") from None
    except OSError as error:
        raise _unusable(f"cannot write {path}: {error.strerror or error}; --out takes another") from None


def _say(words: str) -> None:
    typer.echo(words, err=True)


def _unusable(words: str) -> typer.Exit:
    _say(words)
    return typer.Exit(USAGE_ERROR)
