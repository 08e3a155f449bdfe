"""`python -m tests.prove.fuzz`: inputs that nobody expects, by the ten thousand, to a real server.

Judged: no answer 500 and none missing, no traceback in the journal; unless --no-measures, the loop is never half a
second late, and the memory of the second half does not rise. Input N of a seed is always made in the same way:
`--seed S --at N` sends it alone. The ids in it are those that the server has given so far.

`--schemathesis` sends what Schemathesis makes of the OpenAPI documents instead; pip fetches it from the network.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from adapters.blade import wire as blade
from adapters.zenflux import wire as zenflux

from .attack import FuzzClient
from .documented_requests import try_documented_requests
from .frames import FrameMaker, methods_of
from .requests import RequestMaker, routes_of
from .target import MIB, STALL, Target, growth
from .values import KnownIds

CHAT = [model.model_json_schema() for model in (zenflux.ChatSend, zenflux.ChatAbort, zenflux.SessionResume)]
EVENTS = [model.model_json_schema() for model in (blade.ChatSend, blade.Subscribe)]
SHOWN = 20
LOOKS = 100
"""How often a run looks at the server."""


class Run:
    """One server, attacked and judged."""

    def __init__(self, target: Target, options: argparse.Namespace) -> None:
        self._target, self._options = target, options
        known, routes = KnownIds(), routes_of(target.application())
        self._routes = routes
        events = [name for name in methods_of("blade") if ":" in name]
        self._attack = FuzzClient(
            target.port, options.seed, RequestMaker(routes, known), FrameMaker(CHAT, known, methods_of("zenflux")),
            FrameMaker(EVENTS, known, events), known,
        )
        self._looks: list[tuple[float, float]] = []
        self._complaints = self._told = 0
        self._began = time.monotonic()
        count = sum(map(len, routes))
        print(f"seed {options.seed}: {options.inputs} inputs to {count} routes and two sockets", flush=True)

    def carry_out(self) -> bool:
        numbers = [self._options.at] if self._options.at is not None else range(self._options.inputs)
        asyncio.run(self._send(numbers))
        time.sleep(0.5)  # what is under way may still complain
        self._complain(self._target.complaints())
        late = self._target.late()
        return self._verdict(self._target.stop(), late)

    async def _send(self, numbers: "list[int] | range") -> None:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{self._target.port}") as http:
            for body in ({"agent": {"name": "demo"}},) * 5:
                await http.post("/aap/sessions", json=body)
        await self._attack.run(numbers, self._options.workers, self._look)

    def _look(self) -> None:
        sent = self._attack.sent
        if sent % max(1, self._options.inputs // LOOKS):
            return
        self._looks.append((float(sent), float(self._target.rss)))
        self._complain(self._target.complaints())
        for line in self._attack.wrong[self._told:]:
            print(f"  {_ends(line)}", flush=True)
        self._told = len(self._attack.wrong)
        if sent % max(1, self._options.inputs // 10) == 0:
            seconds = time.monotonic() - self._began
            print(f"  {sent} inputs in {seconds:.0f} s, {self._looks[-1][1] / MIB:.0f} MiB, "
                  f"{len(self._attack.wrong)} wrong answers, {self._complaints} complaints", flush=True)

    def _complain(self, lines: list[str]) -> None:
        for line in lines[:SHOWN]:
            print(f"  {_ends(line)}", flush=True)
        self._complaints += len(lines)

    def _verdict(self, code: int, late: int) -> bool:
        answers = ", ".join(f"{status}: {count}" for status, count in sorted(self._attack.statuses.items()))
        slowest = "".join(f"\n  {seconds:.1f} s for input {number}, {self._attack.shown(number)}"
                          for seconds, number in self._attack.slowest)
        print(f"answers: {answers}\nslowest: {slowest}\njournal: {self._target.journal_bytes / MIB:.1f} MiB")
        reached = sum(any(route.name in self._attack.reached for route in alike)
                      for alike in self._routes)
        print(f"reached: {reached} of {len(self._routes)} handlers have done what they were asked for")
        wrong = len(self._attack.wrong)
        print(f"{wrong} wrong answers, {self._complaints} complaints in the journal, exit code {code}")
        failed = wrong + self._complaints + (code != 0)
        if self._options.measures and len(self._looks) > 10:
            failed += self._measured(late)
        print("FAILED" if failed else "nothing broke")
        return not failed

    def _measured(self, late: int) -> int:
        rise, allowed = growth(*zip(*self._looks, strict=True))
        print(f"memory: {rise / MIB:+.1f} MiB in the second half, {allowed / MIB:.1f} allowed; "
              f"the loop was {late} times more than {STALL} s late")
        return int(rise > allowed) + int(late > 0)


def _ends(line: str) -> str:
    """A traceback is long, and tells what happened at its end."""
    return line if len(line) < 1200 else f"{line[:400]} ... {line[-800:]}"


def main() -> int:
    form = argparse.ArgumentParser(prog="python -m tests.prove.fuzz", description=__doc__)
    form.add_argument("--inputs", type=int, default=100_000)
    form.add_argument("--seed", type=int, default=int(time.time()))
    form.add_argument("--at", type=int, help="send one input alone")
    form.add_argument("--workers", type=int, default=12)
    form.add_argument("--no-measures", dest="measures", action="store_false", help="judge neither memory nor lateness")
    form.add_argument("--schemathesis", action="store_true", help="requests made of the OpenAPI documents instead")
    form.add_argument("--minutes", type=float, help="ignored: the number of inputs says how long it takes")
    options = form.parse_args()
    with TemporaryDirectory(prefix="fuzz-") as folder:
        target = Target(Path(folder))
        try:
            if options.schemathesis:
                return 0 if try_documented_requests(target, Path(folder)) else 1
            return 0 if Run(target, options).carry_out() else 1
        finally:
            target.process.kill()


if __name__ == "__main__":
    sys.exit(main())
