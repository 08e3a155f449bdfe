"""The language of faults.yaml: how one step of a reference server goes wrong, compiled to a subclass of that server.

A change names a step (a method of the reference server) and says what goes wrong there: with what the step returns,
with what it is given (`argument`), or with the step itself (`skip`, `answer`, `refuse`, `rescue`, `instead`, `first`,
`then`, `leaves`). `it` is the value that is changed; of a step that tells a stream, it is each event of the stream.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from types import GeneratorType
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

from conformance.faults.values import (
    FUNCTIONS,
    FUNCTIONS_WITH,
    IS,
    MISSING,
    TESTS,
    Scope,
    applied,
    changed,
    find,
    first,
    holds,
    parse_path,
    references,
    resolved,
    same,
    shaped,
)

STEP = re.compile(r"(?:(?P<part>\w+)\.)?(?P<name>\w+)(?:\((?P<given>[^)]*)\))?")
PARTS = {"performer": "performer_type"}
"""Parts of a server that have steps of their own, and the attribute of the server that holds their class."""
CALLS = ("skip", "answer", "refuse", "rescue", "instead", "first", "then", "leaves")
"""What can go wrong with the step itself."""
EDITS = ("becomes", "set", "remove", "keep", "rename", "change", "drop", "repeat", "insert")
"""What can go wrong with a value."""
Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: given.split() if isinstance(given, str) else given)]
Condition = dict[str, Any]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Insertion(_Entry):
    """Items that are told before or after each item for which a condition holds."""

    items: list[Any]
    before: Condition | None = None
    after: Condition | None = None


class Change(_Entry):
    """One step of a server that goes wrong."""

    at: str
    when: Condition = {}
    argument: str | None = None
    becomes: Any = None
    set: dict[str, Any] = {}
    remove: Names = ()
    keep: Names = ()
    rename: dict[str, str] = {}
    change: dict[str, Any] = {}
    drop: Condition | None = None
    repeat: Condition | None = None
    insert: Insertion | None = None
    skip: Literal[True] | None = None
    answer: Any = None
    refuse: list[Any] | None = None
    rescue: Any = None
    instead: Annotated[list[Any], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] = []
    first: list[Any] = []
    then: list[Any] = []
    leaves: dict[str, Any] = {}

    @property
    def part(self) -> str | None:
        """The attribute that holds the class of the step, if that is not the server itself."""
        match = STEP.fullmatch(self.at)
        return PARTS.get(match["part"], match["part"]) if match and match["part"] else None

    @property
    def step(self) -> str:
        match = STEP.fullmatch(self.at)
        return match["name"] if match else self.at

    @property
    def given(self) -> list[Any]:
        """What the first arguments of the step must be; `*` stands for anything."""
        match = STEP.fullmatch(self.at)
        texts = (match["given"] or "").split(",") if match else []
        return [text.strip() if text.strip() == "*" else yaml.safe_load(text) for text in texts if text.strip()]


# -- checking ----------------------------------------------------------------------------------------------------------


def problems(change: Change, server: type[Any]) -> Iterator[str]:
    """What is wrong with a change of this server, in words; a step that exists and names that are known are right."""
    if STEP.fullmatch(change.at) is None:
        yield f"at: {change.at!r} is no step; write `step`, `step(first, *, third)` or `performer.step`"
        return
    if change.part and not hasattr(server, change.part):
        yield f"at: the server has no part {change.at.partition('.')[0]!r}; it has: {', '.join(PARTS)}"
        return
    owner = getattr(server, change.part) if change.part else server
    if not hasattr(owner, change.step):
        yield f"at: {owner.__name__} has no step {change.step!r}; {nearest(change.step, dir(owner))}"
        return
    if not any(name in change.model_fields_set for name in (*CALLS, *EDITS)):
        yield f"nothing goes wrong at {change.at}; say one of: {', '.join((*EDITS, *CALLS))}"
    if callable(getattr(owner, change.step)):
        yield from _unknown_names(change, server, list(inspect.signature(getattr(owner, change.step)).parameters)[1:])
    elif change.model_fields_set != {"at", "becomes"}:
        yield f"at: {change.step} is a setting; a setting can only have `becomes`"


def _unknown_names(change: Change, server: type[Any], arguments: list[str]) -> Iterator[str]:
    if change.argument is not None and change.argument not in arguments:
        yield f"argument: {change.step} has no argument {change.argument!r}; {nearest(change.argument, arguments)}"
    known = [*arguments, "it", "server", "fresh"]
    used = [path.partition(".")[0] for path in (*change.when, *change.leaves)]
    used += [name for field in change.model_fields_set for name in references(_plain(getattr(change, field)))]
    yield from (f"there is no {name!r} at {change.step}; {nearest(name, known)}" for name in used if name not in known)
    if len(change.given) > len(arguments):
        yield f"at: {change.step} has only {len(arguments)} arguments"
    for function in change.change.values():
        name = function if isinstance(function, str) else next(iter(function or [""]))
        table: Mapping[str, Any] = FUNCTIONS if isinstance(function, str) else FUNCTIONS_WITH
        if name not in table:
            yield f"change: there is no function {name!r} here; {nearest(name, table)}"
    for name in [*change.instead[:1], *change.first[:1], *change.then[:1]]:
        if not hasattr(server, name):
            yield f"{server.__name__} has no step {name!r}; {nearest(name, dir(server))}"
    for wanted in [condition["is"] for condition in _tests(change) if "is" in condition]:
        if wanted not in IS:
            yield f"is: there is no {wanted!r}; {nearest(str(wanted), IS)}"


def _tests(change: Change) -> list[Condition]:
    conditions = (change.when, change.drop or {}, change.repeat or {})
    found = [wanted for condition in conditions for wanted in condition.values()]
    return [wanted for wanted in found if isinstance(wanted, dict) and set(wanted) <= set(TESTS)]


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at what was meant."""
    names = [item for item in known if not item.startswith("_")]
    near = get_close_matches(name, names, n=1)
    if near:
        return f"do you mean {near[0]!r}?"
    return f"there is: {', '.join(names)}" if len(names) <= 20 else "nothing there has a similar name"


# -- compiling ---------------------------------------------------------------------------------------------------------


class Tally:
    """Which changes of a fault have made a difference since the tally was cleared."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def clear(self) -> None:
        self.seen.clear()


def mutated(server: type[Any], changes: Sequence[Change], refusal: type[Exception], name: str, tally: Tally) -> type:
    """A subclass of the server whose steps go wrong as the changes say."""
    owners: dict[str | None, list[_Mistake]] = defaultdict(list)
    for place, change in enumerate(changes):
        owners[change.part].append(_Mistake(change, refusal, lambda place=place: tally.seen.add(place)))  # type: ignore[misc]
    parts = {part: _subclass(getattr(server, part), name, mistakes, {}) for part, mistakes in owners.items() if part}
    return _subclass(server, name, owners[None], parts)


def _subclass(base: type[Any], name: str, mistakes: Sequence["_Mistake"], parts: Mapping[str, Any]) -> type:
    made: list[type] = []
    steps = {mistake.change.step for mistake in mistakes}
    members = {step: _overridden(made, base, step, [it for it in mistakes if it.change.step == step]) for step in steps}
    made.append(type(name, (base,), {**parts, **members}))
    return made[0]


def _overridden(made: list[type], base: type[Any], step: str, mistakes: Sequence["_Mistake"]) -> Any:
    original = getattr(base, step)
    if not callable(original):
        mistakes[-1].hit()
        return mistakes[-1].change.becomes

    def work(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(made[0], self), step)(*args, **kwargs)

    wrapped: Callable[..., Any] = work
    for mistake in mistakes:
        wrapped = mistake.around(wrapped, inspect.signature(original), inspect.iscoroutinefunction(original))
    return wrapped


class _Mistake:
    """A change at work: it lets a step run, and makes it go wrong where the change says so."""

    def __init__(self, change: Change, refusal: type[Exception], hit: Callable[[], None]) -> None:
        self.change, self.refusal, self.hit = change, refusal, hit
        self.given = change.given
        self.said = change.model_fields_set
        paths = {path: parse_path(path) for path in change.when}
        self.of_it = [(paths[path], wanted) for path, wanted in change.when.items() if paths[path][0] == "it"]
        self.of_call = [(paths[path], wanted) for path, wanted in change.when.items() if paths[path][0] != "it"]

    def around(self, work: Callable[..., Any], signature: inspect.Signature, is_async: bool) -> Callable[..., Any]:
        def run(server: Any, *args: Any, **kwargs: Any) -> Any:
            return _drive(self.steps(work, signature.bind(server, *args, **kwargs), server))

        async def run_async(server: Any, *args: Any, **kwargs: Any) -> Any:
            steps = self.steps(work, signature.bind(server, *args, **kwargs), server)
            return await _drive_async(steps, self.refusal)

        return run_async if is_async else run

    def steps(self, work: Callable[..., Any], call: inspect.BoundArguments, server: Any) -> Generator[Any, Any, Any]:
        """What is done instead of the step; whatever may have to be awaited is yielded."""
        call.apply_defaults()
        change, scope = self.change, {**call.arguments, "server": server}
        scope.pop("self", None)
        if not self.is_meant(call, scope):
            return (yield work(*call.args, **call.kwargs))
        if change.argument is not None:
            call.arguments[change.argument] = self.edited(call.arguments[change.argument], scope)
            return (yield work(*call.args, **call.kwargs))
        if change.first:
            yield self.called(server, change.first, scope)
        if change.refuse is not None:
            self.hit()
            raise self.refusal(*resolved(change.refuse, scope))
        result = yield from self.result(work, call, server, scope)
        scope["it"] = result
        if change.then and self.is_fitting(scope):
            yield self.called(server, change.then, scope)
        for path, value in change.leaves.items():
            self.leave(path, resolved(value, scope), scope)
        return self.edited(list(result) if isinstance(result, GeneratorType) else result, scope)

    def result(
        self, work: Callable[..., Any], call: inspect.BoundArguments, server: Any, scope: Scope
    ) -> Generator[Any, Any, Any]:
        """What the step returns, or what is said instead of it."""
        change, kind = self.change, call.signature.return_annotation
        if change.skip or "answer" in self.said:
            self.hit()
            return shaped(resolved(change.answer, scope), kind)
        if change.instead:
            others = change.instead if len(change.instead) > 1 else [*change.instead, *call.args[1:]]
            return (yield self.called(server, others, scope))
        try:
            return (yield work(*call.args, **call.kwargs))
        except self.refusal:
            if "rescue" not in self.said:
                raise
            self.hit()
            return shaped(resolved(change.rescue, scope), kind)

    def called(self, server: Any, step: list[Any], scope: Scope) -> Any:
        """Take another step of the server: its name and its arguments."""
        self.hit()
        return getattr(server, step[0])(*(resolved(argument, scope) for argument in step[1:]))

    def leave(self, path: str, value: Any, scope: Scope) -> None:
        """What the step leaves behind in one of its arguments."""
        *way, last = parse_path(path)
        place = first(scope, tuple(way))
        self.noted(place.get(last) if isinstance(place, dict) else getattr(place, last), value)
        if isinstance(place, dict):
            place[last] = value
        else:
            setattr(place, last, value)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def is_meant(self, call: inspect.BoundArguments, scope: Scope) -> bool:
        """Whether this call of the step goes wrong."""
        given = list(call.arguments.values())[1:]
        fits = all(want == "*" or same(want, value) for want, value in zip(self.given, given, strict=False))
        return fits and all(holds(wanted, list(find(scope, path)), scope) for path, wanted in self.of_call)

    def is_fitting(self, scope: Scope) -> bool:
        """Whether this value is one that goes wrong."""
        return all(holds(wanted, list(find(scope, path)), scope) for path, wanted in self.of_it)

    # -- values --------------------------------------------------------------------------------------------------------

    def edited(self, value: Any, scope: Scope) -> Any:
        """The value as it is wrong; of a stream, each event."""
        if not any(name in self.said for name in EDITS):
            return value
        if hasattr(value, "__aiter__"):
            return self.stream(value, scope)
        scope = {**scope, "it": value}
        if not self.is_fitting(scope):
            return value
        value = self.rewritten(value, scope)
        if isinstance(value, list | tuple) and {"drop", "repeat", "insert"} & self.said:
            return type(value)(item for each in value for item in self.spread(each, scope))
        return value

    async def stream(self, events: AsyncIterator[Any], scope: Scope) -> AsyncIterator[Any]:
        async for event in events:
            here = {**scope, "it": event}
            if not self.is_fitting(here):
                yield event
                continue
            for told in self.spread(self.rewritten(event, here), here):
                yield told

    def rewritten(self, value: Any, scope: Scope) -> Any:
        """The value after `becomes`, `set`, `remove`, `keep`, `rename` and `change`, in this order."""
        for path, edit in self.edits(scope):
            value = changed(value, parse_path(path), lambda old, edit=edit: self.noted(old, edit(old)))  # type: ignore[misc]
        return value

    def edits(self, scope: Scope) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Where the value is edited, and how."""
        change = self.change
        if "becomes" in self.said:
            yield ".", partial(_replaced, resolved(change.becomes, scope))
        for path, wanted in change.set.items():
            yield path, partial(_replaced, resolved(wanted, scope))
        yield from ((path, _removed) for path in change.remove)
        if change.keep:
            yield ".", partial(_kept, change.keep)
        for path, name in change.rename.items():
            *way, last = parse_path(path)
            yield ".".join(way) or ".", partial(_renamed, {last: name})
        yield from ((path, partial(applied, function, scope)) for path, function in change.change.items())

    def noted(self, old: Any, new: Any) -> Any:
        """The new value; that it is another one is noted."""
        if not same(old, new):
            self.hit()
        return new

    def spread(self, item: Any, scope: Scope) -> Iterator[Any]:
        """What is told for one item of a list or a stream."""
        change, here = self.change, {**scope, "it": item}

        def fits(condition: Condition | None) -> bool:
            paths = (condition or {}).items()
            is_so = condition is not None and all(holds(it, list(find(item, parse_path(at))), here) for at, it in paths)
            if is_so:
                self.hit()
            return is_so

        if fits(change.drop):
            return
        insertion = change.insert
        others = [shaped(resolved(other, here), type(item)) for other in insertion.items] if insertion else []
        if insertion and fits(insertion.before):
            yield from others
        yield item
        if fits(change.repeat):
            yield item
        if insertion and fits(insertion.after):
            yield from others


def _replaced(new: Any, old: Any) -> Any:
    return old if new is MISSING else shaped(new, type(old))


def _removed(old: Any) -> Any:
    return MISSING


def _kept(names: Sequence[str], old: Any) -> Any:
    return {name: item for name, item in old.items() if name in names}


def _renamed(names: Mapping[str, str], old: Any) -> Any:
    return {names.get(name, name): item for name, item in old.items()}


def _drive(steps: Generator[Any, Any, Any]) -> Any:
    """Run steps that need not be awaited."""
    try:
        value = next(steps)
        while True:
            value = steps.send(value)
    except StopIteration as end:
        return end.value


async def _drive_async(steps: Generator[Any, Any, Any], refusal: type[Exception]) -> Any:
    """Run steps, await what they yield, and tell them of refusals."""
    try:
        value = next(steps)
        while True:
            try:
                result = await value if inspect.isawaitable(value) else value
            except refusal as error:
                value = steps.throw(error)
            else:
                value = steps.send(result)
    except StopIteration as end:
        return end.value
