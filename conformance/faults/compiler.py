"""Compiles changes to a subclass of a reference server, whose steps go wrong as the changes say."""

import inspect
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import GeneratorType
from typing import Any, NoReturn

from conformance.faults.mutation import EDITS, Change, Condition
from conformance.faults.values import (
    MISSING,
    Scope,
    Steps,
    applied,
    changed,
    find,
    first,
    holds,
    parse_path,
    resolved,
    same,
    shaped,
)

Work = Callable[..., Any]


class Tally:
    """Which changes of a fault have made a difference since the tally was cleared, and which could not be made."""

    def __init__(self) -> None:
        self.settings: set[int] = set()
        self.seen: set[int] = set()
        self.troubles: list[str] = []

    def clear(self) -> None:
        self.seen = set(self.settings)
        self.troubles.clear()


def mutated(server: type[Any], changes: Sequence[Change], refusal: type[Exception], name: str, tally: Tally) -> type:
    """A subclass of the server whose steps go wrong as the changes say."""
    owners: dict[str | None, list[_Mistake]] = defaultdict(list)
    for place, change in enumerate(changes):
        owners[change.part].append(_Mistake(change, refusal, tally, place))
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
        mistakes[-1].tally.settings.add(mistakes[-1].place)
        return mistakes[-1].change.becomes

    def work(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(made[0], self), step)(*args, **kwargs)

    wrapped: Work = work
    for mistake in mistakes:
        wrapped = mistake.around(wrapped, inspect.signature(original), inspect.iscoroutinefunction(original))
    return wrapped


class _Mistake:
    """A change at work: it lets a step run, and makes it go wrong where the change says so."""

    def __init__(self, change: Change, refusal: type[Exception], tally: Tally, place: int) -> None:
        self.change, self.refusal, self.tally, self.place = change, refusal, tally, place
        self.given, self.said = change.given, change.model_fields_set
        conditions = [(parse_path(path), wanted) for path, wanted in change.when.items()]
        self.of_it = [item for item in conditions if item[0][0] == "it"]
        self.of_refusal = [item for item in conditions if item[0][0] == "refusal"]
        self.of_call = [item for item in conditions if item[0][0] not in ("it", "refusal")]

    def hit(self) -> None:
        """The change has made a difference."""
        self.tally.seen.add(self.place)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A change that breaks is no fault of the server: the tally has it, and tests look there."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self.tally.troubles.append(f"{self.change.at}: {error!r}")
            raise

    def around(self, work: Work, signature: inspect.Signature, is_async: bool) -> Work:
        def run(server: Any, *args: Any, **kwargs: Any) -> Any:
            return _drive(self.steps(work, signature.bind(server, *args, **kwargs), server))

        async def run_async(server: Any, *args: Any, **kwargs: Any) -> Any:
            steps = self.steps(work, signature.bind(server, *args, **kwargs), server)
            return await _drive_async(steps, self.refusal)

        return run_async if is_async else run

    def steps(self, work: Work, call: inspect.BoundArguments, server: Any) -> Generator[Any, Any, Any]:
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
            yield self.called(work, server, change.first, scope)
        if change.refuse is not None and not self.of_it and not self.of_refusal:
            self.refused(scope)
        result = yield from self.result(work, call, server, scope)
        scope["it"] = result
        if change.refuse is not None and not self.of_refusal and self.is_fitting(scope):
            self.refused(scope)
        if change.then and self.is_fitting(scope):
            yield self.called(work, server, change.then, scope)
        for path, value in change.leaves.items() if self.is_fitting(scope) else ():
            self.leave(path, resolved(value, scope), scope)
        return self.edited(list(result) if isinstance(result, GeneratorType) else result, scope)

    def result(
        self, work: Work, call: inspect.BoundArguments, server: Any, scope: dict[str, Any]
    ) -> Generator[Any, Any, Any]:
        """What the step returns, or what is said instead of it."""
        change, kind = self.change, call.signature.return_annotation
        if change.skip or "answer" in self.said:
            self.hit()
            return self.value(change.answer, kind, scope)
        if change.instead:
            others = change.instead if len(change.instead) > 1 else [*change.instead, *call.args[1:]]
            return (yield self.called(work, server, others, scope))
        try:
            return (yield work(*call.args, **call.kwargs))
        except self.refusal as refusal:
            scope["refusal"] = refusal
            if not self.fits(self.of_refusal, scope) or not (self.of_refusal or "rescue" in self.said):
                raise
            if "rescue" not in self.said:
                self.refused(scope)
            self.hit()
            return self.value(change.rescue, kind, scope)

    def value(self, said: Any, kind: Any, scope: Scope) -> Any:
        with self.watched():
            return shaped(resolved(said, scope), kind)

    def refused(self, scope: Scope) -> NoReturn:
        self.hit()
        raise self.refusal(*resolved(self.change.refuse, scope)) from None

    def called(self, work: Work, server: Any, step: list[Any], scope: Scope) -> Any:
        """Take another step of the server, given as name and arguments; the step itself as it is without the change."""
        self.hit()
        arguments = [resolved(argument, scope) for argument in step[1:]]
        return work(server, *arguments) if step[0] == self.change.step else getattr(server, step[0])(*arguments)

    def leave(self, path: str, value: Any, scope: Scope) -> None:
        """What the step leaves behind in one of its arguments."""
        *way, last = parse_path(path)
        with self.watched():
            place = first(scope, tuple(way))
            self.noted(partial(_replaced, value), first(place, (last,)))
            if isinstance(place, dict):
                place[last] = value
            else:
                setattr(place, last, value)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def is_meant(self, call: inspect.BoundArguments, scope: Scope) -> bool:
        """Whether this call of the step goes wrong."""
        given = list(call.arguments.values())[1:]
        fits = all(want == "*" or same(want, value) for want, value in zip(self.given, given, strict=False))
        return fits and self.fits(self.of_call, scope)

    def is_fitting(self, scope: Scope) -> bool:
        """Whether this value is one that goes wrong."""
        return self.fits(self.of_it, scope)

    def fits(self, conditions: Sequence[tuple[Steps, Any]], scope: Scope) -> bool:
        with self.watched():
            return all(holds(wanted, list(find(scope, path)), scope) for path, wanted in conditions)

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
        with self.watched():
            for path, edit in self.edits(scope):
                value = changed(value, parse_path(path), partial(self.noted, edit))
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

    def noted(self, edit: Callable[[Any], Any], old: Any) -> Any:
        """The edited value; that it is another one is noted."""
        new = edit(old)
        if not same(old, new):
            self.hit()
        return new

    def spread(self, item: Any, scope: Scope) -> Iterator[Any]:
        """What is told for one item of a list or a stream."""
        change, here = self.change, {**scope, "it": item}

        def fits(condition: Condition | None) -> bool:
            paths = [(("it", *parse_path(at)), wanted) for at, wanted in (condition or {}).items()]
            is_so = condition is not None and self.fits(paths, here)
            if is_so:
                self.hit()
            return is_so

        if fits(change.drop):
            return
        insertion = change.insert
        others = [self.value(other, type(item), here) for other in insertion.items] if insertion else []
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
