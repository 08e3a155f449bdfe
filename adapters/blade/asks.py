"""How Blade asks people, by the questions of an AskUserQuestion call, and what their answers mean."""

from collections.abc import Mapping, Sequence

import gateway.model as m
from gateway.errors import Invalid

ASK_TOOL = "AskUserQuestion"
YES, NO = 0, 1
FIRST_QUESTION = "0"
STAY_WORD = "none"
"""The option of a rollback that changes nothing."""

Selections = dict[str, tuple[int, ...]]
CustomTexts = dict[str, str]
AnswerWords = str | list[str]
WordedAnswer = str | list[AnswerWords] | dict[str, AnswerWords]


def is_ask_call(call: m.ToolCall) -> bool:
    """Whether Blade's clients show a call as questions to a person."""
    return call.name == ASK_TOOL and isinstance(call.input.get("questions"), list)


def questions_of(ask: m.AnyAsk) -> tuple[m.Question, ...]:
    """The ask as questions; the first choice of a yes or no is the yes."""
    match ask:
        case m.QuestionAsk(questions=questions):
            return questions
        case m.PermissionAsk(call=call, description=description):
            words = description or f"Run {call.display_name or call.name}?"
            allow = m.Choice(label="Allow", description=call.name)  # the person must see the input
            return (m.Question(question=words, header="Permission", options=(allow, m.Choice(label="Deny"))),)
        case m.ContinuationAsk(message=message):
            return (_question("Continue", message, "Continue", "Stop"),)
        case m.RollbackAsk(options=options, error=error, reason=reason):
            words = " ".join(filter(None, (error, reason))) or "Something went wrong."
            return (_question("Roll back", words, *map(option_word, options)),)
        case m.ClientToolAsk(call=call):
            return (m.Question(question=f"What does {call.name} return?", header=call.display_name or call.name),)


def _question(header: str, words: str, *labels: str) -> m.Question:
    return m.Question(question=words, header=header, options=tuple(m.Choice(label=label) for label in labels))


def option_word(option: Mapping[str, object]) -> str:
    """The name by which a state of a rollback is chosen."""
    return str(option.get("id") or option.get("target") or option.get("action") or dict(option))


# -- from picks to answers --------------------------------------------------------------------------------------------

def answer_bindings(found: m.OpenAsk, selections: Selections, custom: CustomTexts) -> dict[str, object]:
    """The fields of the answer's command; wrong picks are refused."""
    ask = found.ask
    if isinstance(ask, m.QuestionAsk):
        return {"selections": selections, "custom": custom}
    pick, words = _single_pick(questions_of(ask)[0], selections, custom)
    match ask:
        case m.PermissionAsk():
            return {"granted": pick == YES, "reason": words}
        case m.ClientToolAsk():
            return {"content": words or ""}
        case m.RollbackAsk(options=options):
            states = [*map(option_word, options)]
            return {"option": _chosen_option(states, words) if pick is None else states[pick]}
    return {"proceed": pick == YES} if pick is not None else m.parse_answer(ask, words or "") or {}


def _chosen_option(options: Sequence[str], words: str | None) -> str | None:
    """The state of that name; None for the option that changes nothing, unless a state has its name."""
    stays = words is not None and words.strip().lower() == STAY_WORD and words not in options
    return None if stays else words


def _single_pick(question: m.Question, selections: Selections, custom: CustomTexts) -> tuple[int | None, str | None]:
    """The pick or the text that answers the only question."""
    for number in (*selections, *custom):
        if number != FIRST_QUESTION:
            raise Invalid(f"there is no question {number}; there is 1, counted from 0")
    picks, words = selections.get(FIRST_QUESTION, ()), custom.get(FIRST_QUESTION) or None
    if not picks and words is None:
        raise Invalid("question 0 is not answered; give a selection or custom text")
    if len(picks) > 1:
        raise Invalid(f"question 0 takes one choice, not {len(picks)}")
    if picks and not 0 <= picks[0] < len(question.options):
        raise Invalid(f"question 0 has no choice {picks[0]}; it has {len(question.options)}")
    return (picks[0] if picks else None), words


def picks_from_words(questions: Sequence[m.Question], answer: WordedAnswer) -> tuple[Selections, CustomTexts]:
    """The picks of an answer as text: the label of a choice picks it, other text is the person's own."""
    selections, custom = Selections(), CustomTexts()
    for number, question in enumerate(questions):
        picked = _words_for(number, question, answer, len(questions))
        labels = {choice.label.lower(): at for at, choice in enumerate(question.options)}
        words = [picked] if isinstance(picked, str) else picked
        if picks := tuple(labels[word.lower()] for word in words if word.lower() in labels):
            selections[str(number)] = picks
        if own := ", ".join(word for word in words if word and word.lower() not in labels):
            custom[str(number)] = own
    return selections, custom


def _words_for(number: int, question: m.Question, answer: WordedAnswer, of: int) -> AnswerWords:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list) and of == 1:  # all that is listed is about the only question
        return [word for one in answer for word in ([one] if isinstance(one, str) else one)]
    if isinstance(answer, list):
        return answer[number] if number < len(answer) else ""
    names = (str(number), question.header or "", question.question)
    return next((answer[name] for name in names if name in answer), "")


# -- and from answers to picks ----------------------------------------------------------------------------------------

def picks_of_answer(ask: m.AnyAsk, answer: m.Answer) -> tuple[Selections, CustomTexts] | None:
    """An answer of any dialect as picks; None if nobody answered."""
    match answer:
        case m.AnswerQuestion(selections=selections, custom=custom):
            return selections, custom
        case m.DecidePermission(granted=granted, reason=reason):
            return {FIRST_QUESTION: (YES if granted else NO,)}, {FIRST_QUESTION: reason} if reason else {}
        case m.ContinueTurn(proceed=proceed):
            return {FIRST_QUESTION: (YES if proceed else NO,)}, {}
        case m.ReturnResult(content=content):
            return {}, {FIRST_QUESTION: m.text_of(content)}
        case m.RollBack(option=option):
            return _picked_option(ask, option)
    return None


def _picked_option(ask: m.AnyAsk, option: str | None) -> tuple[Selections, CustomTexts]:
    options = [option_word(one) for one in ask.options] if isinstance(ask, m.RollbackAsk) else []
    return (
        ({FIRST_QUESTION: (options.index(option),)}, {})
        if option in options
        else ({}, {FIRST_QUESTION: option or STAY_WORD})
    )


def picks_in_words(questions: Sequence[m.Question], selections: Selections, custom: CustomTexts) -> str:
    """The picks as text, question by question: `Permission: Allow`."""
    lines = []
    for number, question in enumerate(questions):
        picks = [question.options[at].label for at in selections.get(str(number), ()) if at < len(question.options)]
        words = ", ".join(filter(None, (*picks, custom.get(str(number)))))
        lines.append(f"{question.header or question.question}: {words}")
    return "; ".join(lines)
