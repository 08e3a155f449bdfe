"""What the demo agent's directives do with people and sub-agents: one small function each."""

from contextlib import aclosing

import gateway.model as m
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


async def ask(stage: DemoTurn, directive: Directive) -> BackendEvents:
    for said in (*stage.open_message(), *_question_call(stage.writer), *stage.close_message(m.StopReason.TOOL_USE)):
        yield said
    call = stage.writer.calls[-1]
    yield m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.AWAITING_INPUT)
    [answer] = await stage.turn.ask(m.QuestionAsk(questions=QUESTIONS, call=call))
    told, back = _apply_answer(call, answer)
    stage.note_result(call.name, back)
    for status in told:
        yield status
    yield back


def _question_call(pen: EventWriter) -> list[BackendEvent]:
    """The tool is known by this name and this input far beyond this house."""
    questions = [{
        "question": one.question, "header": one.header, "multiSelect": one.multi_select,
        "options": [{"label": choice.label, "description": choice.description or ""} for choice in one.options],
    } for one in QUESTIONS]
    return pen.call("AskUserQuestion", {"questions": questions}, display_name="Ask the user")


def _apply_answer(call: m.ToolCall, answer: m.Answer) -> tuple[list[m.ToolStatusChanged], m.ToolReturned]:
    """What an answer makes of the call that asked, and what is said of it before."""
    match answer:
        case m.AnswerQuestion():
            return [], m.ToolReturned(call_id=call.call_id, content=_choices(answer))
        case m.ReturnResult(content=content, is_error=is_error):
            return [], m.ToolReturned(call_id=call.call_id, content=content, is_error=is_error)
    cancelled = m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.CANCELLED)
    return [cancelled], m.ToolReturned(call_id=call.call_id, content="Tool call cancelled", is_error=True)


def _choices(answer: m.AnswerQuestion) -> str:
    """The choices in words: `Colour: Red; Fruits: Apple, Cherry`."""
    lines = []
    for number, question in enumerate(QUESTIONS):
        picked = answer.selections.get(str(number), ())
        chosen = [question.options[at].label for at in picked if 0 <= at < len(question.options)]
        free = answer.custom.get(str(number))
        lines.append(f"{question.header}: {', '.join([*chosen, *([free] if free else [])]) or 'no answer'}")
    return "; ".join([*lines, *([answer.message] if answer.message else [])])


# -- sub-agents -------------------------------------------------------------------------------------------------------

def fork(stage: DemoTurn, directive: Directive) -> BackendEvents:
    return _fork(stage, asking=False)


def fork_ask(stage: DemoTurn, directive: Directive) -> BackendEvents:
    return _fork(stage, asking=True)


async def _fork(stage: DemoTurn, *, asking: bool) -> BackendEvents:
    """Hand the words to a sub-agent, which may ask, and tell what it made of them."""
    task = stage.script.text or "nothing in particular"
    for said in (
        *stage.open_message(),
        *stage.writer.call("Agent", {"description": task}),
        *stage.close_message(m.StopReason.TOOL_USE),
    ):
        yield said
    call, child = stage.writer.calls[-1], EventWriter(stage.turn, stage.turn.mint("scope"), clock=stage.clock)
    yield m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.RUNNING)
    yield child.emit(m.ScopeOpened(parent=m.ROOT, call_id=call.call_id, agent=stage.turn.agent.name, title="Helper"))
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING))
    yield m.ScopeMessage(sender=m.ROOT, recipient=child.scope_id, content=task)
    answers: list[str] = []
    if asking:
        async with aclosing(_ask_from_subagent(stage, call, child, answers)) as events:
            async for said in events:
                yield said
    report = f"I looked into: {task}" + "".join(f" ({answer})" for answer in answers)
    yield child.start_message(model=MODEL, context_window=CONTEXT_WINDOW)
    for said in child.text(report):
        yield said
    yield child.end_message(usage=count_usage(child, count_words(task)))
    yield child.emit(m.ScopeMessage(sender=child.scope_id, recipient=m.ROOT, content=report))
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.IDLE, stop_reason=m.StopReason.END_TURN))
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=m.StopReason.END_TURN))
    back = m.ToolReturned(call_id=call.call_id, content=report)
    stage.note_result(call.name, back)
    yield back


async def _ask_from_subagent(
    stage: DemoTurn, fork: m.ToolCall, child: EventWriter, answers: list[str]
) -> BackendEvents:
    """The child asks, and whoever called it waits with it; the answer is written down in `answers`."""
    yield child.start_message(model=MODEL, context_window=CONTEXT_WINDOW)
    for said in _question_call(child):
        yield said
    yield child.end_message(stop_reason=m.StopReason.TOOL_USE, usage=count_usage(child, 0))
    call = child.calls[-1]
    yield child.emit(m.ToolStatusChanged(call_id=call.call_id, status=m.ToolStatus.AWAITING_INPUT))
    yield m.ToolStatusChanged(call_id=fork.call_id, status=m.ToolStatus.AWAITING_INPUT)
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.BLOCKED, stop_reason=m.StopReason.NEEDS_INPUT))
    [answer] = await stage.turn.ask(m.QuestionAsk(questions=QUESTIONS, call=call), scope_id=child.scope_id)
    yield child.emit(m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING))
    yield m.ToolStatusChanged(call_id=fork.call_id, status=m.ToolStatus.RUNNING)
    told, back = _apply_answer(call, answer)
    answers.append(m.text_of(back.content))
    for status in told:
        yield child.emit(status)
    yield child.emit(back)


# -- decisions about the turn -----------------------------------------------------------------------------------------

async def ask_to_continue(stage: DemoTurn, directive: Directive) -> BackendEvents:
    for said in stage.close_message(m.StopReason.NEEDS_INPUT):
        yield said
    [answer] = await stage.turn.ask(m.ContinuationAsk(turn=1, message="This may take long. Shall I go on?"))
    if isinstance(answer, m.ContinueTurn) and answer.proceed:
        stage.notes.append("I went on.")
        return
    stage.has_ended = True
    for said in (*stage.open_message(), *stage.writer.text("I stopped."), *stage.close_message(m.StopReason.END_TURN)):
        yield said


async def rollback(stage: DemoTurn, directive: Directive) -> BackendEvents:
    """Something goes wrong, and a person chooses the state to go back to."""
    for said in stage.close_message(m.StopReason.NEEDS_INPUT):
        yield said
    fault = m.Fault(code=m.FaultCode.BACKEND, message="The last step could not be finished.", retryable=True)
    yield m.FaultRaised(fault=fault)
    [answer] = await stage.turn.ask(m.RollbackAsk(
        task_id=stage.turn.mint("task"), error=fault.message, reason="A step failed.",
        options=({"id": "step", "action": "undo_step", "target": "the last step"},
                 {"id": "all", "action": "undo_all", "target": "the beginning"}),
    ))
    option = answer.option if isinstance(answer, m.RollBack) else None
    stage.notes.append(f"I rolled back to: {option}." if option else "I rolled nothing back.")
