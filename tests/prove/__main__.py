"""`make prove`: run the proofs that take long, measure, or start many processes, and tell what was proven."""

import argparse
import difflib
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.prove.proofs import InvalidProofs, Proof, find_proofs
from tests.support.child_commands import ChildCommand

ROOT = Path(__file__).resolve().parents[2]
LOGS = Path(".prove")
PASSED, FAILED, NOT_FINISHED, NOT_RUN = "passed", "FAILED", "NOT FINISHED", "NOT RUN"
TAIL = 40
"""Lines of a failing proof that are shown."""
SILENCE = 60.0
"""Seconds after which a proof that runs is spoken of again."""
USAGE_ERROR = 2
EPILOG = """\
Proofs are run one after the other. What they print is in .prove/<name>.log. With --minutes, a proof that can be cut
short is given its share of the time; a proof that cannot is run if the time that is left is enough for it. The exit
code is 0 if all proofs passed, 1 if one did not or was not run, 2 if the command line is wrong, 130 after Ctrl-C.
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a proof."""

    proof: Proof
    result: str
    seconds: float = 0.0
    cpu: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class Plan:
    """The proofs of a run in their order, and how long and in which form each is run."""

    root: Path
    proofs: Sequence[Proof]
    is_sample: bool = False
    is_whole: bool = False
    minutes: float | None = None
    further: Sequence[str] = ()

    def command(self, proof: Proof, left: float) -> list[str]:
        if self.is_sample:
            return proof.sample_command(self.further)
        if self._is_whole(proof):
            return proof.whole_command(self.further)
        return proof.command(min(self.share(proof), round(left, 2)), self.further)

    def share(self, proof: Proof) -> float:
        """Minutes for this proof: those it takes, or its part of fewer."""
        if self.minutes is None:
            return proof.minutes
        return round(proof.minutes * min(1.0, self.minutes / sum(each.minutes for each in self.proofs)), 2)

    def fits(self, proof: Proof, left: float) -> bool:
        """Whether so many minutes are enough for the proof."""
        if self.is_sample or self._is_whole(proof):
            return left > 0
        return left >= (proof.minutes if proof.has_tests else self.share(proof) / 2)

    def limit(self, proof: Proof, left: float) -> float:
        """Minutes after which the proof is ended: those that are left, unless it keeps the time itself.

        Further words may ask for more than a proof does by itself: nobody knows how long that takes.
        """
        if self._is_whole(proof) or self.further:
            return left
        hang = 10 + 6 * proof.minutes
        return min(hang, left) if proof.has_tests or self.is_sample else hang

    def _is_whole(self, proof: Proof) -> bool:
        return self.is_whole and proof.whole is not None

    def to_go(self, place: int) -> str:
        """How much comes after the first `place` proofs."""
        rest = self.proofs[place:]
        if self.is_sample or self.is_whole or not rest:
            return f"{len(rest)} to go"
        return f"{len(rest)} to go, about {sum(map(self.share, rest)):.0f} min"


class Run:
    """The proofs of a plan, one after the other, and what is said about them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.outcomes: list[Outcome] = []
        self.is_interrupted = False
        self._began = time.monotonic()

    def run(self) -> None:
        (self.plan.root / LOGS).mkdir(exist_ok=True)
        try:
            for place, proof in enumerate(self.plan.proofs):
                self._tell(place, f"{proof.name} begins; {self.plan.to_go(place)}")
                outcome = self._prove(place, proof)
                self.outcomes.append(outcome)
                self._tell(place, f"{proof.name} {outcome.result} in {_span(outcome.seconds)}; "
                                  f"{self.plan.to_go(place + 1)}")
                if outcome.result in (FAILED, NOT_FINISHED):
                    self._show(proof)
        except KeyboardInterrupt:
            self.is_interrupted = True
            print("interrupted", flush=True)
        done = len(self.outcomes)
        self.outcomes += [Outcome(proof, NOT_RUN, remark="interrupted") for proof in self.plan.proofs[done:]]

    def _prove(self, place: int, proof: Proof) -> Outcome:
        left = (self.plan.minutes or float("inf")) - (time.monotonic() - self._began) / 60
        if not self.plan.fits(proof, left):
            return Outcome(proof, NOT_RUN, remark=f"takes about {proof.minutes:g} min; {max(0, left):.1f} were left")
        limit = 60 * self.plan.limit(proof, left)
        with ChildCommand(self.plan.command(proof, left), cwd=self.plan.root, log=self._log(proof)) as command:
            while command.seconds < limit and not command.wait(min(SILENCE, max(0.0, limit - command.seconds))):
                if command.seconds < limit:
                    self._tell(place, f"{proof.name} has run for {_span(command.seconds)}: {self._last_line(proof)}")
            ended = command.end()
        if ended.code is None:
            return Outcome(proof, NOT_FINISHED, ended.seconds, ended.cpu, f"ended after {_span(ended.seconds)}")
        if ended.code != 0:
            return Outcome(proof, FAILED, ended.seconds, ended.cpu, f"exit code {ended.code}")
        return Outcome(proof, PASSED, ended.seconds, ended.cpu)

    def _log(self, proof: Proof) -> Path:
        return self.plan.root / LOGS / f"{proof.name}.log"

    def _lines(self, proof: Proof) -> list[str]:
        return self._log(proof).read_text(encoding="utf-8", errors="replace").splitlines()

    def _last_line(self, proof: Proof) -> str:
        lines = [line.strip() for line in self._lines(proof) if line.strip()]
        return lines[-1][-100:] if lines else "nothing printed yet"

    def _show(self, proof: Proof) -> None:
        print(f"--- the last lines of {LOGS / proof.name}.log", *self._lines(proof)[-TAIL:], "---", sep="\n")

    def _tell(self, place: int, words: str) -> None:
        print(f"[{place + 1}/{len(self.plan.proofs)} {_span(time.monotonic() - self._began)}] {words}", flush=True)

    def tell_summary(self) -> None:
        width = max(map(len, ["proof", *(outcome.proof.name for outcome in self.outcomes)]))
        print(f"\n{'proof':{width}}  {'result':12}  {'seconds':>7}  {'CPU':>7}  what it proves")
        for outcome in self.outcomes:
            remark = f" [{outcome.remark}]" if outcome.remark else ""
            print(f"{outcome.proof.name:{width}}  {outcome.result:12}  {outcome.seconds:7.0f}  {outcome.cpu:7.0f}  "
                  f"{outcome.proof.sentence}{remark}")
        results = [outcome.result for outcome in self.outcomes]
        counts = ", ".join(f"{results.count(word)} {word}" for word in (PASSED, FAILED, NOT_FINISHED, NOT_RUN)
                           if word in results)
        print(f"\n{counts}; {_span(time.monotonic() - self._began)}, "
              f"{_span(sum(outcome.cpu for outcome in self.outcomes))} of CPU")

    @property
    def exit_code(self) -> int:
        if self.is_interrupted:
            return 130
        return 0 if all(outcome.result == PASSED for outcome in self.outcomes) else 1


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make prove", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage='make prove ARGS="[--only NAME]… [--minutes N] [--sample | --whole] [--list] [[--] words for one proof]"',
        allow_abbrev=False,
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this proof; may be repeated")
    parser.add_argument("--minutes", type=float, metavar="N", help="for how long at most, in all")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--sample", action="store_true", help="a short run of what does not measure; under five minutes")
    form.add_argument("--whole", action="store_true", help="the longest form of the proofs that have one (see --list)")
    parser.add_argument("--list", action="store_true", help="only tell which proofs there are")
    return parser


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    options, unknown = _parser().parse_known_args(given[:cut])
    further = [*unknown, *given[cut + 1:]]
    try:
        proofs = find_proofs(root)
        chosen = _chosen(proofs, options.only, options.sample)
        if not chosen:
            raise _Misused("there is nothing to run")
        if further and len(chosen) != 1:
            raise _Misused(f"{' '.join(further)}: words for one proof; name the proof with --only")
        if others := [word for word in unknown if word in {proof.name for proof in proofs}]:
            raise _Misused(f"{' '.join(others)}: write --only before each name")
        if options.minutes is not None and options.minutes <= 0:
            raise _Misused("--minutes: more than 0")
    except (_Misused, InvalidProofs) as error:
        print(f"make prove: {error}", file=sys.stderr)
        return USAGE_ERROR
    if options.list:
        _list(proofs)
        return 0
    run = Run(Plan(root, chosen, options.sample, options.whole, options.minutes, further))
    run.run()
    run.tell_summary()
    if not options.only:
        for name, why in ((proof.name, proof.only_if_named) for proof in proofs if proof.only_if_named):
            print(f'not part of this run: {name} ({why}): make prove ARGS="--only {name}"')
    return run.exit_code


class _Misused(Exception):
    """The command line asks for something that is not there."""


def _chosen(proofs: Sequence[Proof], names: Sequence[str], is_sample: bool) -> list[Proof]:
    known = {proof.name: proof for proof in proofs}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise _Misused(f"there is no proof {name!r}{hint} There are: {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names)] or [p for p in proofs if not p.only_if_named]
    if not is_sample:
        return chosen
    sampled = [proof for proof in chosen if proof.sample is not None and not proof.measures]
    if without := [proof.name for proof in chosen if names and proof not in sampled]:
        raise _Misused(f"has no sample: {', '.join(without)}")
    return sampled


def _list(proofs: Sequence[Proof]) -> None:
    for proof in proofs:
        traits = [f"about {proof.minutes:g} min", "measures" if proof.measures else "",
                  "in the sample" if proof.sample is not None and not proof.measures else "",
                  f"--whole runs {proof.whole}" if proof.whole else "",
                  f"only if named: {proof.only_if_named}" if proof.only_if_named else ""]
        print(f"{proof.name}: {proof.sentence}\n    {'; '.join(filter(None, traits))}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
