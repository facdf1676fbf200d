"""One answer while it is written: what was asked, what has come so far, and how it ended."""

from dataclasses import dataclass, replace

from app.chat.answer_form import AnswerForm
from app.chat.chat_model import ChatModel
from app.chat.digest import Digest
from app.chat.draft import NEWEST
from app.chat.example import Example
from app.chat.guided import Check
from app.chat.likelihoods import Chosen, Likelihoods, chosen_of
from app.chat.message import Message, MessageState
from app.chat.prompts import Prompt
from app.chat.turns import Turn
from app.documents.grounds import Grounds
from app.documents.whole_text import WholeText
from engine.async_engine import OutputStream
from engine.logprobs import TokenChoice
from engine.metrics import Timings
from engine.request import FinishReason, RequestOptions, RequestOutput
from engine.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class Answer:
    """One moment of an answer that is being written.

    `doing` is a sentence about what comes before it, or empty.
    """

    message: Message
    num_prompt_tokens: int
    num_prompt_tokens_read: int
    doing: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of another answer, which this one goes on from in another way."""

    token_ids: tuple[int, ...]
    tokens: tuple[Chosen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Who is to answer, what it reads, how it chooses its words, and in which form it answers.

    `prompt` is the `path` of what is sent under the conversation's system prompt and clock.
    """

    model: ChatModel
    made: Prompt
    params: SamplingParams
    options: RequestOptions
    system_prompt: str
    clock: float
    form: AnswerForm | None = None
    begun: Begun | None = None
    examples: tuple[Example, ...] = ()
    notice: str = ""
    """What the user should know of what the model reads, or empty."""
    grounds: Grounds | None = None
    """What the answer is to stand on."""
    read: WholeText | None = None
    """The document that stands whole before all that is said, in the system prompt."""

    digest: Digest | None = None
    """The answer is a summary of a document, made by several requests."""

    @property
    def is_asked(self) -> bool:
        """The model is asked; it is not where nothing was found to stand on."""
        return self.grounds is None or self.grounds.is_found

    @property
    def prompt(self) -> list[int]:
        """Empty as long as a summary must come first."""
        return self.made.token_ids

    @property
    def path(self) -> tuple[Turn, ...]:
        return self.made.turns


class Writing:
    """An answer from its empty message on. Owned by the task that runs `ChatSession.reply`.

    Anyone in the same event loop may look at `answer` or call `stop`.
    """

    def __init__(self, message: Message, question: Question) -> None:
        self.question = question
        self.doing = ""
        self._message = replace(message, model=question.model.name if question.is_asked else "")
        self.ask(question.made)
        self._splitter = question.model.splitter()
        self._thinking: list[str] = []
        self._content: list[str] = []
        self._token_ids: list[int] = []
        self._choices: list[TokenChoice] = []
        self._part = 0
        self._num_read = 0
        self._is_stopped = False
        self.stream: OutputStream | None = None

    @property
    def answer(self) -> Answer:
        return Answer(self.message, len(self.question.prompt), self._num_read, self.doing)

    @property
    def message(self) -> Message:
        """As it stands; joined on demand, because nobody looks at every token."""
        if self.is_over:
            return self._message
        return replace(
            self._message, content="".join(self._content), thinking="".join(self._thinking)
        )

    @property
    def is_over(self) -> bool:
        """Nothing will be added. It may still wait to be stored."""
        return self._message.state is not MessageState.STREAMING

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    def stop(self) -> None:
        """End it; what is written stays. It may not have begun yet."""
        self._is_stopped = True
        if self.stream is not None:
            self.stream.abort()

    def ask(self, prompt: Prompt) -> None:
        """From now on this is what the model reads for it."""
        seen = prompt.seen
        if seen.first_id == NEWEST:
            # It was named before it was stored.
            seen = replace(seen, first_id=self._message.parent_id or "")
        self.question = replace(self.question, made=prompt)
        self._message = replace(self._message, seen=seen)

    def tell(self, doing: str) -> None:
        self.doing = doing

    def add(self, output: RequestOutput) -> None:
        self._num_read = max(self._num_read, output.num_prompt_tokens_read)
        self._token_ids.extend(output.token_ids)
        self._choices.extend(output.choices)
        if output.text:
            self._add_text(*self._splitter.feed(output.text))

    def settle(self) -> str:
        """All of it is there: the text of the answer, without thinking."""
        self._add_text(*self._splitter.finish())
        return "".join(self._content)

    def part(self, heading: str) -> None:
        """What comes next is another part of the answer, and asked for by another request."""
        self.settle()
        self._splitter = self.question.model.splitter()
        self._part = len(self._content)
        before = "\n\n" if self._content else ""
        self.say(f"{before}**{heading}**\n\n")

    def settle_part(self) -> str:
        """All of a part is there: its text, with its heading."""
        self._add_text(*self._splitter.finish())
        return "".join(self._content[self._part :]).strip()

    def say(self, text: str) -> None:
        """Words of the app, where no model is asked."""
        self._content.append(text)

    def warn(self, notice: str) -> None:
        """Let this stand beside the answer, too."""
        known = filter(None, (self.question.notice, notice))
        self.question = replace(self.question, notice=" ".join(known))

    def cite(self, grounds: Grounds) -> None:
        """What its citations are worth is known."""
        self._message = replace(self._message, grounds=grounds)

    def begin_anew(self, doing: str) -> None:
        """What is written does not count; another one is asked for."""
        self.tell(doing)
        self._splitter = self.question.model.splitter()
        self._thinking.clear()
        self._content.clear()
        self._token_ids.clear()
        self._choices.clear()

    def finish(self, last: RequestOutput, check: Check | None) -> None:
        """The engine's last output has come, and what `check` says of the answer's form."""
        assert last.finish_reason is not None
        self.tell("")
        made_in = self._message.made_in
        if made_in is not None and check is not None:
            fault = check.fault.encode("utf-8", "replace").decode()
            made_in = replace(made_in, is_checked=True, fault=fault)
            self._message = replace(self._message, made_in=made_in)
        stopped = last.finish_reason is FinishReason.ABORT
        state = MessageState.STOPPED if stopped else MessageState.DONE
        notice = " ".join(filter(None, (self.question.notice, last.notice)))
        self.end(state, last.finish_reason.value, notice, last.timings)

    def end(
        self,
        state: MessageState,
        finish_reason: str = "",
        notice: str = "",
        timings: Timings | None = None,
    ) -> None:
        self.settle()
        self._message = replace(
            self.message,
            state=state,
            finish_reason=finish_reason,
            notice=notice,
            token_ids=tuple(self._token_ids),
            likelihoods=self._likelihoods(),
            timings={} if timings is None else timings.as_json(),
        )

    def _likelihoods(self) -> Likelihoods | None:
        """None when nobody asked for them, or they are not of all tokens."""
        begun = self.question.begun or Begun((), ())
        num_told = len(begun.tokens) + len(self._choices)
        if not self._choices or num_told != len(self._token_ids):
            return None
        tokenizer = self.question.model.loaded.tokenizer
        return Likelihoods.of(
            [*begun.tokens, *chosen_of(self._choices, tokenizer, begun.token_ids)]
        )

    def note(self, notice: str) -> None:
        """Put a sentence beside the answer; the end of the answer brings its own."""
        self._message = replace(self._message, notice=notice)

    def _add_text(self, thinking: str, content: str) -> None:
        if thinking:
            self._thinking.append(thinking)
        if content:
            self._content.append(content)
