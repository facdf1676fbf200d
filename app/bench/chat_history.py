"""The conversations of one side in a chat workload, and the plan that gives them their sizes."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from app.bench.chat_client import Answer, OnPiece
from app.bench.chat_sides import Side
from app.bench.chat_texts import QUESTION_TOKENS, Texts
from engine.errors import InglenookError, UsageError

CANCEL_AFTER = 8
"""Pieces of text, of an answer that would be much longer."""
MIN_PASSAGE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the scripts have in common. All sizes in tokens.

    `turns` a conversation after its first answer, `chats` at once where there are many;
    `first_text` is the number of the first text of this workload.
    """

    texts: Texts
    context: int
    turns: int
    chats: int
    tokens: int
    first_text: int = 0

    @property
    def turn_tokens(self) -> int:
        return QUESTION_TOKENS + self.tokens

    def passage(self, number: int, num_tokens: int) -> str:
        return self.texts.passage(self.first_text + number, num_tokens)

    def size(self, wanted: int, *, turns: int, more: int = 0) -> int:
        """`wanted`, or what `turns` turns and `more` tokens leave of the context."""
        # The system prompt, and what templates put in front.
        left = self.context - 2 * QUESTION_TOKENS - turns * self.turn_tokens - more
        if left < MIN_PASSAGE:
            raise UsageError(
                f"{turns} turns of {self.turn_tokens} tokens do not fit a context of"
                f" {self.context:,}: take fewer --turns or a larger --context."
            )
        return min(wanted, left)


class Chat:
    """One conversation of one side: a history that only this script changes."""

    def __init__(self, side: Side, chat_id: str, messages: tuple[Mapping[str, str], ...]) -> None:
        self._side = side
        self.chat_id = chat_id
        self.messages = messages

    @classmethod
    def begin(cls, side: Side, plan: Plan, chat_id: str) -> "Chat":
        return cls(side, chat_id, ({"role": "system", "content": plan.texts.system},))

    def fork(self) -> "Chat":
        """Another branch of the same conversation."""
        return Chat(self._side, self.chat_id, self.messages)

    def ask(self, text: str, max_tokens: int | None = None) -> Answer:
        self._add("user", text)
        return self.answer(max_tokens)

    def answer(self, max_tokens: int | None = None) -> Answer:
        """Of what was asked already."""
        found = self._side.ask(self.messages, self.chat_id, max_tokens)
        # A message without any text is none to most servers.
        self._add("assistant", found.text if found.text.strip() else "Yes.")
        return found

    def ask_and_stop(self, text: str, max_tokens: int) -> None:
        """Stop reading after a few pieces. The question stays, the piece of an answer does not."""
        self._add("user", text)
        moments: list[float] = []

        def read_on(moment: float) -> bool:
            moments.append(moment)
            return len(moments) < CANCEL_AFTER

        self._side.ask(self.messages, self.chat_id, max_tokens, read_on)

    def say(self, text: str, max_tokens: int, on_piece: OnPiece) -> None:
        """Ask and read beside others, in any thread."""
        self._add("user", text)
        self._side.say(self.messages, self.chat_id, max_tokens, on_piece)

    def _add(self, role: str, content: str) -> None:
        self.messages = (*self.messages, {"role": role, "content": content})


def with_text(text: str, asked: str) -> str:
    return f"{text}\n\n{asked}"


class Talker:
    """A long answer that is read in a thread of its own, from the start of its writing on.

    `stop` ends it with its next piece; what it read may be looked at afterwards.
    """

    def __init__(self, chat: Chat, text: str, max_tokens: int) -> None:
        self._moments: list[float] = []
        self._has_begun = threading.Event()
        self._is_stopped = False
        self._error: InglenookError | None = None
        self._thread = threading.Thread(target=self._talk, args=(chat, text, max_tokens))
        self._thread.start()

    def wait(self) -> None:
        """Until it writes."""
        self._has_begun.wait()

    def stop(self) -> None:
        self._is_stopped = True
        self._thread.join()

    def gaps(self, began: float, ended: float) -> list[float]:
        """Those that were, even in part, between the two moments. Raises what ended it."""
        if self._error is not None:
            raise self._error
        return [
            later - earlier
            for earlier, later in zip(self._moments, self._moments[1:], strict=False)
            if later > began and earlier < ended
        ]

    def _talk(self, chat: Chat, text: str, max_tokens: int) -> None:
        def read_on(moment: float) -> bool:
            self._moments.append(moment)
            self._has_begun.set()
            return not self._is_stopped

        try:
            chat.say(text, max_tokens, read_on)
        except InglenookError as error:
            self._error = error
        finally:
            self._has_begun.set()
