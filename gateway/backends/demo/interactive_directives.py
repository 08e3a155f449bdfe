"""Directives that ask people or open sub-agents, one function each."""

from collections.abc import Sequence

import gateway.model as m
from gateway.backends.tool_executor import CALL_CANCELLED
from gateway.backends.tools import QUESTION_TOOL, question_input
from gateway.client import BackendEvents, EventWriter
from gateway.ports import BackendEvent

from .directive_parser import Directive
from .turn import CONTEXT_WINDOW, MODEL, DemoTurn, count_usage, count_words

# -- questions --------------------------------------------------------------------------------------------------------

QUESTIONS = (
    m.Question(
        question="Which colour do you like?", header="Colour",
        options=(m.Choice(label="Red", description="Like a poppy"), m.Choice(label="Green"), m.Choice(label="Blue")),
    ),
    m.Question(
        question="Which fruits do you want?", header="Fruits", multi_select=True,
        options=(m.Choice(label="Apple"), m.Choice(label="Banana"), m.Choice(label="Cherry")),
    ),
)


async def ask(demo: DemoTurn, directive: Directive) -> BackendEvents:
    for event in (*demo.open_message(), *_question_call(demo.writer), *demo.close_message(m.StopReason.TOOL_USE)):
        yield event
    call = demo.writer.calls[-1]
    yield m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.AWAITING_INPUT)
    [answer] = await demo.turn.ask(m.QuestionAsk(questions=QUESTIONS, call=call))
    statuses, result = _apply_answer(call, answer)
    demo.note_result(call.name, result)
    for status in statuses:
        yield status
    yield result


def _question_call(writer: EventWriter) -> list[BackendEvent]:
    return writer.call(QUESTION_TOOL, question_input(QUESTIONS), display_name="Ask the user")


def _apply_answer(call: m.ToolCall, answer: m.Answer) -> tuple[list[m.ToolStatusChanged], m.ToolReturned]:
    """The status before the result of the call that asked, and the result."""
    match answer:
        case m.AnswerQuestion():
            return [], m.ToolReturned(call_id=call.call_id, content=_choices(answer))
        case m.ReturnResult(content=content, is_error=is_error):
            return [], m.ToolReturned(call_id=call.call_id, content=content, is_error=is_error)
    cancelled = m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.CANCELLED)
    return [cancelled], m.ToolReturned(call_id=call.call_id, content=CALL_CANCELLED, is_error=True)


def _choices(answer: m.AnswerQuestion) -> str:
    """The choices as text: `Colour: Red; Fruits: Apple, Cherry`."""
    lines = []
    for number, question in enumerate(QUESTIONS):
        picked = answer.selections.get(str(number), ())
        chosen = [question.options[at].label for at in picked if 0 <= at < len(question.options)]
        free = answer.custom.get(str(number))
        lines.append(f"{question.header}: {', '.join([*chosen, *([free] if free else [])]) or 'no answer'}")
    return "; ".join([*lines, *([answer.message] if answer.message else [])])


# -- sub-agents -------------------------------------------------------------------------------------------------------

def fork(demo: DemoTurn, directive: Directive) -> BackendEvents:
    return _fork(demo, asking=False)


def fork_ask(demo: DemoTurn, directive: Directive) -> BackendEvents:
    return _fork(demo, asking=True)


async def _fork(demo: DemoTurn, *, asking: bool) -> BackendEvents:
    """Give the text to a sub-agent, which may ask, and report its result."""
    task = demo.script.text or "nothing in particular"
    for event in (
        *demo.open_message(),
        *demo.writer.call("Agent", {"description": task}),
        *demo.close_message(m.StopReason.TOOL_USE),
    ):
        yield event
    call, child = demo.writer.calls[-1], EventWriter(demo.turn, demo.turn.mint("scope"), clock=demo.clock)
    yield m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.RUNNING)
    yield child.emit(m.ScopeOpened(parent=m.ROOT, call_id=call.call_id, agent=demo.turn.agent.name, title="Helper"))
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING))
    yield m.ScopeMessage(sender=m.ROOT, recipient=child.scope_id, content=task)
    report = f"I looked into: {task}"
    if asking:
        for event in _subagent_asks(call, child):
            yield event
        question = m.QuestionAsk(questions=QUESTIONS, call=child.calls[-1])
        [answer] = await demo.turn.ask(question, scope_id=child.scope_id)
        statuses, answered = _apply_answer(child.calls[-1], answer)
        for event in _subagent_continues(call, child, statuses, answered):
            yield event
        report += f" ({m.text_of(answered.content)})"
    yield child.start_message(model=MODEL, context_window=CONTEXT_WINDOW)
    for event in child.text(report):
        yield event
    yield child.end_message(usage=count_usage(child, count_words(task)))
    yield child.emit(m.ScopeMessage(sender=child.scope_id, recipient=m.ROOT, content=report))
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.IDLE, stop_reason=m.StopReason.END_TURN))
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.END_TURN))
    back = m.ToolReturned(call_id=call.call_id, content=report)
    demo.note_result(call.name, back)
    yield back


def _subagent_asks(fork: m.ToolCall, child: EventWriter) -> list[BackendEvent]:
    """The child asks, and the call that opened it waits with it."""
    return [
        child.start_message(model=MODEL, context_window=CONTEXT_WINDOW),
        *_question_call(child),
        child.end_message(stop_reason=m.StopReason.TOOL_USE, usage=count_usage(child, 0)),
        child.emit(m.ToolStatusChanged(call_id=child.calls[-1].call_id, status=m.ToolStatus.AWAITING_INPUT)),
        m.ToolStatusChanged(call_id=fork.call_id, status=m.ToolStatus.AWAITING_INPUT),
        child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT)),
    ]


def _subagent_continues(
    fork: m.ToolCall, child: EventWriter, statuses: Sequence[m.ToolStatusChanged], answered: m.ToolReturned,
) -> list[BackendEvent]:
    return [
        child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)),
        m.ToolStatusChanged(call_id=fork.call_id, status=m.ToolStatus.RUNNING),
        *(child.emit(status) for status in statuses),
        child.emit(answered),
    ]


# -- decisions about the turn -----------------------------------------------------------------------------------------

async def ask_to_continue(demo: DemoTurn, directive: Directive) -> BackendEvents:
    for event in demo.close_message(m.StopReason.NEEDS_INPUT):
        yield event
    [answer] = await demo.turn.ask(m.ContinuationAsk(turn=1, message="This may take long. Shall I go on?"))
    if isinstance(answer, m.ContinueTurn) and answer.proceed:
        demo.notes.append("I went on.")
        return
    demo.has_ended = True
    for event in (*demo.open_message(), *demo.writer.text("I stopped."), *demo.close_message(m.StopReason.END_TURN)):
        yield event


async def rollback(demo: DemoTurn, directive: Directive) -> BackendEvents:
    """A step fails, and a person chooses the state to go back to."""
    for event in demo.close_message(m.StopReason.NEEDS_INPUT):
        yield event
    fault = m.Fault(code=m.FaultCode.BACKEND, message="The last step could not be finished.", retryable=True)
    yield m.FaultRaised(fault=fault)
    [answer] = await demo.turn.ask(m.RollbackAsk(
        task_id=demo.turn.mint("task"), error=fault.message, reason="A step failed.",
        options=({"id": "step", "action": "undo_step", "target": "the last step"},
                 {"id": "all", "action": "undo_all", "target": "the beginning"}),
    ))
    option = answer.option if isinstance(answer, m.RollBack) else None
    demo.notes.append(f"I rolled back to: {option}." if option else "I rolled nothing back.")
