"""Makes the changes of a fault: puts steps that go wrong in the place of steps of a reference server."""

import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from types import GeneratorType
from typing import Any, NoReturn

from conformance.faults.mutation import EDITS, Change, Condition, part_named
from conformance.faults.steps import step_of
from conformance.faults.value_expressions import (
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


class Mutation:
    """The changes of a fault; called with a server, it makes them there."""

    def __init__(self, changes: Sequence[Change], refusal: type[Exception], tally: Tally) -> None:
        self.mistakes = [_Mistake(change, refusal, tally, place) for place, change in enumerate(changes)]

    def __call__(self, server: Any) -> None:
        for mistake in self.mistakes:
            mistake.make(server)


class _Mistake:
    """A change at work: it lets a step run, and makes it go wrong where the change says so."""

    def __init__(self, change: Change, refusal: type[Exception], tally: Tally, place: int) -> None:
        self.change, self.refusal, self.tally, self.place = change, refusal, tally, place
        self.given, self.said = change.given, change.model_fields_set
        conditions = [(parse_path(path), wanted) for path, wanted in change.when.items()]
        self.of_it = [item for item in conditions if item[0][0] == "it"]
        self.of_refusal = [item for item in conditions if item[0][0] == "refusal"]
        self.of_call = [item for item in conditions if item[0][0] not in ("it", "refusal")]

    def make(self, server: Any) -> None:
        """Put the mistake in the place of the step, or the other value in the place of the setting."""
        part, name = part_named(server, self.change), self.change.step
        right = getattr(part, name)
        if callable(right):
            setattr(part, name, self.around(right, server))
        else:
            self.tally.settings.add(self.place)
            self.hit()
            setattr(part, name, self.change.becomes)

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

    def around(self, work: Work, server: Any) -> Work:
        signature = inspect.signature(work)

        @wraps(work)
        def run(*args: Any, **kwargs: Any) -> Any:
            return _drive(self.steps(work, signature.bind(*args, **kwargs), server))

        @wraps(work)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            return await _drive_async(self.steps(work, signature.bind(*args, **kwargs), server), self.refusal)

        return run_async if inspect.iscoroutinefunction(work) else run

    def steps(self, work: Work, call: inspect.BoundArguments, server: Any) -> Generator[Any, Any, Any]:
        """What is done instead of the step; whatever may have to be awaited is yielded."""
        call.apply_defaults()
        change, scope = self.change, {**call.arguments, "server": server}
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
            others = change.instead if len(change.instead) > 1 else [*change.instead, *call.args]
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
        other = work if step[0] == self.change.step else step_of(server, step[0])
        return other(*arguments)

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
        given = zip(self.given, call.arguments.values(), strict=False)
        fits = all(want == "*" or same(want, value) for want, value in given)
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
            for item in self.spread(self.rewritten(event, here), here):
                yield item

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
        """The edited value; if it is another one, the change has made a difference."""
        new = edit(old)
        if not same(old, new):
            self.hit()
        return new

    def spread(self, item: Any, scope: Scope) -> Iterator[Any]:
        """What comes for one item of a list or a stream."""
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
    """Run steps, await what they yield, and raise refusals in them."""
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
