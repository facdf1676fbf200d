"""Eight ways in which people use a chat, each as a script that one side goes through.

A script does whatever leads up to a turn and then yields what was measured of it, by the name of
its row. It never ends: when a conversation is full it begins a new one, so that there are as many
turns as the comparison wants. Both sides go through the same script and get the same texts; the
answers in a history are each side's own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from time import perf_counter

from app.bench.chat_client import Answer
from app.bench.chat_history import Chat, Plan, Talker, with_text
from app.bench.chat_sides import Side, settle
from app.bench.chat_texts import QUESTION_TOKENS, question

Step = Mapping[str, Answer]
TALKERS = 3
W3_CHATS = 5


def append_only(
    side: Side, plan: Plan, name: str = "W1", tokens: int | None = None
) -> Iterator[Step]:
    """One conversation that only grows."""
    size = plan.size(plan.context // 4, turns=plan.turns + 1)
    for number in count():
        chat = Chat.begin(side, plan, f"{name.lower()}-{number}")
        chat.ask(with_text(plan.passage(number, size), question(0)), tokens)
        for turn in range(plan.turns):
            yield {name: chat.ask(question(turn + 1), tokens)}


def round_robin(side: Side, plan: Plan) -> Iterator[Step]:
    """More conversations than fit, each in its turn."""
    for number in count():
        chats = opened(side, plan, "w2", number, plan.chats)
        for turn in range(plan.turns):
            for chat in chats:
                yield {"W2": chat.ask(question(turn + 1))}


def opened(
    side: Side, plan: Plan, name: str, number: int, num_chats: int, *, keeps: bool = False
) -> list[Chat]:
    """With texts that fill the context twice, however many there are."""
    size = plan.size(2 * plan.context // num_chats, turns=plan.turns + 1)
    chats = []
    for index in range(num_chats):
        chat = Chat.begin(side, plan, f"{name}-{number}-{index}")
        text = plan.passage(number * num_chats + index, size)
        chat.ask(with_text(text, question(0)))
        if keeps:
            side.keep(chat.chat_id)
        chats.append(chat)
    return chats


def one_document(side: Side, plan: Plan) -> Iterator[Step]:
    """Questions to one document, which each of several conversations begins with."""
    num_chats = min(W3_CHATS, plan.chats)
    num_questions = 2 * plan.turns
    size = plan.size(plan.context, turns=num_questions + 1)
    for number in count():
        document = plan.passage(number, size)
        chats: list[Chat] = []
        for turn in range(num_questions + 1):
            if turn < num_chats:
                chats.append(Chat.begin(side, plan, f"w3-{number}-{turn}"))
                answer = chats[turn].ask(with_text(document, question(turn)))
            else:
                answer = chats[turn % num_chats].ask(question(turn))
            # The first one reads the document, which nobody can be spared.
            if turn:
                yield {"W3": answer}


def two_branches(side: Side, plan: Plan) -> Iterator[Step]:
    """Edit an early message, and go back and forth between what was and what is."""
    exchanges = 4
    size = plan.size(plan.context // 2, turns=plan.turns + exchanges + 1) // 2
    for number in count():
        texts = number * (exchanges + 2)
        old = Chat.begin(side, plan, f"w4-{number}")
        old.ask(with_text(plan.passage(texts, size), question(0)))
        new = old.fork()
        for index in range(1, exchanges + 1):
            text = plan.passage(texts + index, size // exchanges)
            old.ask(with_text(text, question(index)))
        text = plan.passage(texts + exchanges + 1, size // exchanges)
        yield {"W4": new.ask(with_text(text, question(1)))}
        for turn in range(plan.turns):
            yield {"W4": old.ask(question(exchanges + turn))}
            yield {"W4": new.ask(question(exchanges + turn))}


def restarts(side: Side, plan: Plan) -> Iterator[Step]:
    """Go on with conversations after a restart, and after a power cut, by turns."""
    num_chats = max(2, plan.chats // 2)
    for number in count():
        chats = opened(side, plan, "w5", number, num_chats, keeps=True)
        for turn in range(plan.turns):
            is_kill = turn % 2 == 1
            side.restart(kill=is_kill)
            for chat in chats:
                yield {"W5 killed" if is_kill else "W5 stopped": chat.ask(question(turn + 1))}
                side.keep(chat.chat_id)


def stop_and_resend(side: Side, plan: Plan) -> Iterator[Step]:
    """Stop an answer in its middle, and ask for it again."""
    size = plan.size(plan.context // 4, turns=plan.turns + 1, more=plan.context // 8)
    for number in count():
        chat = Chat.begin(side, plan, f"w6-{number}")
        chat.ask(with_text(plan.passage(number, size), question(0)))
        for turn in range(plan.turns):
            chat.ask_and_stop(question(turn + 1), plan.context // 8)
            settle([side])
            yield {"W6": chat.answer()}


def stripped_thinking(side: Side, plan: Plan) -> Iterator[Step]:
    """A template that leaves the thinking out of the history, so that it changes what was said.

    Longer answers, because they are what has to be read again.
    """
    return append_only(side, plan, "W7", 4 * plan.tokens)


def reader_among_talkers(side: Side, plan: Plan) -> Iterator[Step]:
    """A long prompt is read: alone, and then while others are being answered."""
    length = plan.context // 8
    size = plan.size(plan.context // 4, turns=1, more=TALKERS * (length + QUESTION_TOKENS))
    for number in count():
        alone, beside = (
            with_text(plan.passage(2 * number + index, size), question(0)) for index in range(2)
        )
        answer = Chat.begin(side, plan, f"w8-{number}-alone").ask(alone)
        settle([side])
        talkers = [
            Talker(Chat.begin(side, plan, f"w8-{number}-{index}"), question(index), length)
            for index in range(TALKERS)
        ]
        try:
            for talker in talkers:
                talker.wait()
            began = perf_counter()
            found = Chat.begin(side, plan, f"w8-{number}-beside").ask(beside)
        finally:
            for talker in talkers:
                talker.stop()
        ended = began + found.ttft_s
        gaps = [gap for talker in talkers for gap in talker.gaps(began, ended)]
        yield {"W8": replace(found, gaps_s=tuple(gaps), alone_s=answer.ttft_s)}


@dataclass(frozen=True, slots=True)
class Workload:
    """`is_restarting`: it ends its servers and starts them again. `strips_thinking`: it wants a
    model whose template does."""

    name: str
    title: str
    script: Callable[[Side, Plan], Iterator[Step]]
    is_restarting: bool = False
    strips_thinking: bool = False


WORKLOADS = (
    Workload("W1", "one conversation that only grows", append_only),
    Workload("W2", "more conversations than fit, each in its turn", round_robin),
    Workload("W3", "questions to one document in several conversations", one_document),
    Workload("W4", "an early message is edited, and both branches go on", two_branches),
    Workload("W5", "conversations go on after a restart", restarts, is_restarting=True),
    Workload("W6", "an answer is stopped in its middle and asked for again", stop_and_resend),
    Workload("W7", "a template strips the thinking", stripped_thinking, strips_thinking=True),
    Workload("W8", "a long prompt is read while three answers are written", reader_among_talkers),
)
