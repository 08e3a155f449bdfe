"""`dragoman chat` at a terminal as a client under test: `python chat_program.py DIALECT`."""

import os
import pty
import signal
import subprocess
import sys
import time

from conformance.clients.situation import ECHO, Cue, Instruction
from tests.support.chat.pty_terminal import Terminal, program

PROMPT = "\n> "
ASKS = {
    "allow? [": lambda told: "y" if told.decision == "allow" else "n",
    "result [": lambda told: told.result or "",
    "your own words: ": lambda told: str((told.option or 0) + 1),
    "go on? [": lambda told: "y" if told.decision == "allow" else "n",
    "roll back to? [": lambda told: str((told.option or 0) + 1),
}
"""What the program asks, and what a person then types."""


def words(dialect: str, cue: Cue) -> list[str]:
    told, found = cue.instruction, ["chat", cue.url, "--dialect", dialect]
    if cue.key:
        found += ["--key", cue.key]
    if told.tool:
        found += ["--tool", f"{told.tool['name']}={told.tool['description']}"]
    if told.server_tool and not told.is_trusted:
        found += ["--ask-before", told.server_tool]
    return found


def converse(terminal: Terminal, told: Instruction) -> None:
    wait_for_any(terminal, [PROMPT])
    answer = ""
    for message in told.messages:
        text = answer if message == ECHO else message
        shown = len(terminal.seen)
        terminal.type(text + "\n")
        if told.stop:
            wait_for_any(terminal, ["A long"])
            terminal.process.send_signal(signal.SIGINT)
        while (found := wait_for_any(terminal, [PROMPT, *ASKS])) != PROMPT:
            terminal.type(ASKS[found](told) + "\n")
        lines = terminal.seen[shown:].splitlines()[1:]
        answer = next((line.strip() for line in lines if line[:1].isalnum()), "")  # calls and sub-agents are marked


def wait_for_any(terminal: Terminal, texts: list[str]) -> str:
    """The first of these texts that is shown from here on."""
    until = time.monotonic() + 100
    while True:
        places = {text: terminal.seen.find(text, terminal._place) for text in texts}
        found = {text: place for text, place in places.items() if place >= 0}
        if found:
            first = min(found, key=found.__getitem__)
            terminal._place = found[first] + len(first)
            return first
        if not terminal._more(until):
            raise SystemExit(f"the program has ended:\n{terminal.seen}")


def main() -> None:
    cue = Cue.from_environment(os.environ)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
    command = program(words(sys.argv[1], cue))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    terminal = Terminal(process, ours)
    try:
        converse(terminal, cue.instruction)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
