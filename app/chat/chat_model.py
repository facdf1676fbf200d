"""A loaded model with what a chat needs around it: its template and its token ledger."""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.chat.ledger import TokenLedger
from app.chat.message import Role
from app.chat.senses import Senses
from app.chat.template import ChatTemplate
from app.chat.thinking import ThinkingSplitter
from app.chat.turns import Turn, normalise
from engine.config import EngineConfig
from engine.guided.answer import Guidance
from engine.guided.grammar import Grammar
from engine.loading import LoadedModel, load
from engine.media import Media
from engine.tokenizer import THINKING_TAGS

# Two beginnings of a message that share nothing: what their prompts share stands before it.
PROBES = ("Why", "1")


@dataclass(frozen=True, slots=True)
class ChatModel:
    """Made once a model is loaded."""

    loaded: LoadedModel
    template: ChatTemplate
    ledger: TokenLedger
    desk: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="ledger")
    )
    """The one thread that uses the ledger; it finishes a prompt whose asker has gone."""

    whole_sizes: dict[str, int] = field(default_factory=dict)
    """Tokens of documents that were measured to be read whole, by their fences. Touched by the
    event loop only."""

    @property
    def name(self) -> str:
        return self.loaded.info.name

    @property
    def notice(self) -> str:
        """What the user should know of this model's way to chat and to run, or empty."""
        return " ".join(filter(None, (self.template.notice, self.loaded.info.notice)))

    async def prompt(self, path: Sequence[Turn], system_prompt: str, clock: float) -> list[int]:
        """The token ids that ask for the next answer. `clock` is the conversation's own time.

        Off the event loop: a long text takes seconds to tokenize.
        """
        turns = normalise(path, system_prompt)
        now = _time_of(clock)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.desk, self.ledger.encode, turns, now)

    async def prefix(self, path: Sequence[Turn], system_prompt: str, clock: float) -> list[int]:
        """What the prompt of the next turn begins with, whatever the user says in it."""
        now = _time_of(clock)
        following = [normalise([*path, Turn(Role.USER, text)], system_prompt) for text in PROBES]
        loop = asyncio.get_running_loop()
        prompts = [
            await loop.run_in_executor(self.desk, self.ledger.encode, turns, now)
            for turns in following
        ]
        shared = list(os.path.commonprefix(prompts))
        # A prompt has to end with a token, and a picture has none.
        while shared and shared[-1] < 0:
            shared.pop()
        return shared

    def num_media_tokens(self, media: Sequence[Media]) -> int:
        """How much of the context these take, as far as this model can read them."""
        return self.ledger.num_media_tokens(media)

    async def guidance(self, grammar: Grammar | None, *, is_text: bool = False) -> Guidance | None:
        """How the engine keeps the next answer to a form, or to a kind of text. Raises
        GrammarError."""
        if grammar is None:
            return None
        compiled = await self.loaded.grammars.compile(grammar)
        return Guidance(compiled, self.template.opened_tag, is_text)

    def skipped_thinking(self, is_thinker: bool) -> list[int]:
        """Ids that go after a prompt when there is no time to think; `is_thinker` says that this
        model has been seen to, without being made to by its template."""
        opening = self.template.opened_tag
        if not opening and not is_thinker:
            return []
        tags = self.loaded.tokenizer.control_tokens
        tag = opening or next((each for each in THINKING_TAGS if each in tags), "<think>")
        begun = [] if opening else [tag]
        return self.ledger.encode_marks([*begun, "\n", THINKING_TAGS[tag], "\n\n"])

    def close(self) -> None:
        """End the engine and free the model. Blocks."""
        # A prompt that is still made uses the vocabulary.
        self.desk.shutdown(cancel_futures=True)
        self.loaded.close()

    def splitter(self) -> ThinkingSplitter:
        """For one answer of this model."""
        return ThinkingSplitter(self.template.opened_tag)


def _time_of(clock: float) -> datetime:
    return datetime.fromtimestamp(clock, UTC).astimezone()


def load_chat_model(config: EngineConfig) -> ChatModel:
    """Load the model and read its template. Blocks; raises a ModelError or TemplateError."""
    loaded = load(config)
    info = loaded.info
    try:
        template = ChatTemplate.for_model(
            info.chat_template, loaded.tokenizer, info.bos_text, info.eos_text
        )
    except BaseException:
        loaded.close()
        raise
    ledger = TokenLedger(loaded.tokenizer, template, senses=Senses.of(loaded))
    return ChatModel(loaded, template, ledger)
