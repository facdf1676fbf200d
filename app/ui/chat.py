"""The conversation in the middle: its widgets, and the handlers that show and drive it.

A handler takes ids, never the history. A job writes the answer; `follow` only watches it, so
closing or reloading the page changes nothing about the answer.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from app.chat.answer_form import AnswerForm
from app.chat.context import DoesNotFit
from app.chat.message import Message, Overflow, Role
from app.chat.prompts import left_out_before
from app.ui.answer_as import AnswerAs
from app.ui.asks import Asks, scope_from
from app.ui.attached import Attached
from app.ui.boundary import told, told_on_the_way
from app.ui.choices import read_examples
from app.ui.context import Meter, OverflowPanel
from app.ui.render import live_rows, rows
from app.ui.room import Services
from app.ui.settings import SettingsPanel
from app.ui.verbatim import show_verbatim
from app.ui.versions import Versions, beside
from engine.errors import InglenookError, NotFound, UsageError

Updates = dict[Any, Any]

WINDOW = 40
"""Messages shown at first, and added by each "Show earlier messages"."""

STAY_S = 20.0
EARLIER_S = 20.0
TYPING_PAUSE_S = 0.3
"""A text that is being written is measured this often at most."""

EXAMPLES = (
    "Explain how a fireplace draws air, in three sentences.",
    "Write a short, kind birthday message for a neighbour.",
    "Give me five ideas for a rainy Sunday afternoon.",
)
TINY = (
    " It is tiny: it runs on any computer, and it answers badly. Better ones stand under “Models”."
)
MATHS: list[dict[str, str | bool]] = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": "\\(", "right": "\\)", "display": False},
    {"left": "\\[", "right": "\\]", "display": True},
]


def welcome(services: Services, is_early: bool = False) -> str:
    """The first page: what this is, who answers, and what to expect. `is_early`: before it is known
    whether a conversation will be opened, so that the page's style may hold it back."""
    try:
        problem = services.model_error
        name = show_verbatim(services.model.name)
        is_tiny = services.is_starter_model
    except InglenookError as error:
        problem = str(error)
    if problem:
        model = f'<p class="failed">{show_verbatim(problem)}</p>'
    else:
        tiny = TINY if is_tiny else ""
        model = f"<p>You are talking to <b>{name}</b>.{tiny}</p>"
        if services.model_notice:
            model += f"<p>{show_verbatim(services.model_notice)}</p>"
    return (
        f'<div class="welcome{" early" if is_early else ""}"><h1>What is on your mind?</h1>'
        f"<p>Everything stays on this computer.</p>{model}</div>"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The end of a conversation that is on the page. `siblings` are the ids of the last message
    and of the others in its place."""

    messages: tuple[Message, ...] = ()
    num_messages: int = 0
    siblings: tuple[str, ...] = ()

    @property
    def has_earlier(self) -> bool:
        return self.num_messages > len(self.messages)

    @property
    def last_id(self) -> str:
        return self.messages[-1].message_id if self.messages else ""

    def before(self, answer: Message) -> list[Message]:
        """The messages without the answer that is still being written."""
        return [one for one in self.messages if one.message_id != answer.message_id]


class Following:
    """What a tab follows; `earlier` are those that it followed before and that go on."""

    def __init__(self, earlier: "Sequence[Following]") -> None:
        self._earlier = earlier
        self._ended = asyncio.Event()

    async def earlier_end(self) -> bool:
        """Wait for them: what they gave last is on the page then. False: there were none."""
        # One that nobody reads any more may not come to its end.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EARLIER_S):
                for each in self._earlier:
                    await each._ended.wait()
        return bool(self._earlier)

    def end(self) -> None:
        self._ended.set()


class Tabs:
    """What each open tab follows, the newest last. Touched by the event loop only."""

    def __init__(self) -> None:
        self._followings: dict[str, list[Following]] = {}
        self._newest: dict[str, Following] = {}

    @contextlib.contextmanager
    def enter(self, tab: str) -> Iterator[Following]:
        """From now on, whatever this tab followed before is stale."""
        going_on = self._followings.setdefault(tab, [])
        following = self._newest[tab] = Following(tuple(going_on))
        going_on.append(following)
        try:
            yield following
        finally:
            following.end()
            going_on.remove(following)
            if not going_on and self._followings.get(tab) is going_on:
                del self._followings[tab]

    def is_newest(self, tab: str, following: Following) -> bool:
        return self._newest.get(tab) is following

    def leave(self, tab: str) -> None:
        self._newest.pop(tab, None)


class Chat:
    """Widgets and handlers of the conversation. Built inside the page's Blocks."""

    def __init__(self, services: Services, settings: SettingsPanel) -> None:
        self.services = services
        self.settings = settings
        self.tabs = Tabs()
        self.earlier = gr.Button(
            "Show earlier messages", size="sm", visible=False, elem_id="earlier"
        )
        self.chatbot = gr.Chatbot(
            elem_id="chat",
            label="Conversation",
            show_label=False,
            height=None,
            scale=1,
            layout="bubble",
            buttons=["copy"],
            feedback_options=None,
            allow_tags=False,
            group_consecutive_messages=False,
            latex_delimiters=MATHS,
            placeholder=welcome(services, is_early=True),
            examples=[{"text": text} for text in EXAMPLES],
        )
        self.regenerate = gr.Button(
            "Write another answer", size="sm", visible=False, elem_id="regenerate"
        )
        self.versions = Versions()
        self.overflow = OverflowPanel(services)
        with gr.Row(elem_id="above_composer"):
            self.meter = Meter()
            self.attach = gr.Button("Add a picture", size="sm", elem_id="attach")
            self.asks = Asks(services)
            self.answer_as = AnswerAs()
        self.asks.build_whole()
        self.attached = Attached(services.pending)
        self.composer = gr.Textbox(
            elem_id="composer",
            label="Your message",
            show_label=False,
            container=False,
            placeholder="Write a message",
            lines=1,
            max_lines=12,
            submit_btn=True,
            stop_btn=False,
            autofocus=True,
        )
        self.continue_asked = gr.Textbox(elem_id="continue_asked", label="Where to go on")
        self.outputs = [self.chatbot, self.composer, self.earlier, self.regenerate]
        self.outputs += self.versions.outputs

    @told_on_the_way
    async def follow(
        self, conversation_id: str | None, num_shown: int, request: gr.Request
    ) -> AsyncGenerator[Updates, None]:
        """Show the conversation, and its running answer to the end or until the tab moves on."""
        tab = str(request.session_hash)
        with self.tabs.enter(tab) as following:
            given = self._follow(tab, following, conversation_id, num_shown)
            async with contextlib.aclosing(given) as updates:
                async for update in updates:
                    yield update

    async def _follow(
        self, tab: str, following: Following, conversation_id: str | None, num_shown: int
    ) -> AsyncGenerator[Updates, None]:
        # The job before the messages: an answer that ends in between is then in one of them.
        job = self.services.jobs.get(conversation_id) if conversation_id else None
        shown = await self.read(conversation_id, num_shown)
        if job is not None:
            before = shown.before(job.answer.message)
            busy = self._busy(shown)
            async for answer in job.follow():
                if not self.tabs.is_newest(tab, following):
                    break
                held = left_out_before([*before, answer.message])
                # Whole each time: the last word of an older following may come after the first of
                # this one, and would take the Stop button away.
                yield busy | {self.chatbot: rows(before, held) + live_rows(answer)}
            shown = await self.read(conversation_id, num_shown)
        if self.tabs.is_newest(tab, following):
            yield self._idle(shown)
            # Gradio makes each update ready in a thread, so the last one of an older following may
            # come after this one, and would stay.
            if await following.earlier_end() and self.tabs.is_newest(tab, following):
                yield self._idle(shown)
        else:
            # Gradio repeats the last update at the end; it would paint over the other one.
            yield {output: gr.skip() for output in self.outputs}

    async def read(self, conversation_id: str | None, num_shown: int) -> Shown:
        """The end of a conversation; one that is gone shows nothing."""
        if conversation_id is None:
            return Shown()
        conversations = self.services.conversations
        try:
            messages = await conversations.messages(conversation_id, limit=num_shown)
            num_messages = await conversations.num_messages(conversation_id)
            last = [one.message_id for one in messages[-1:] if one.role is Role.ASSISTANT]
            siblings = [each for one in last for each in await conversations.siblings(one)]
        except NotFound:
            return Shown()
        return Shown(messages=tuple(messages), num_messages=num_messages, siblings=tuple(siblings))

    def _idle(self, shown: Shown) -> Updates:
        chatbot = gr.update(value=rows(shown.messages, left_out_before(shown.messages)))
        if not shown.messages:
            # Said anew each time: the model is loaded while the page is there already.
            chatbot["placeholder"] = welcome(self.services)
        return {
            self.chatbot: chatbot,
            self.composer: gr.update(submit_btn=True, stop_btn=False),
            self.earlier: gr.update(visible=shown.has_earlier),
            self.regenerate: gr.update(visible=bool(shown.messages)),
            **self.versions.show(shown.siblings, shown.last_id),
        }

    def _busy(self, shown: Shown) -> Updates:
        return self._idle(shown) | {
            self.composer: gr.update(submit_btn=False, stop_btn=True),
            self.regenerate: gr.update(visible=False),
            self.versions.row: gr.update(visible=False),
        }

    @told
    async def send(
        self,
        text: str,
        attached: str,
        conversation_id: str | None,
        documents: str,
        form: AnswerForm | None,
        *choices: Any,
    ) -> list[Any]:
        """Hand the text and what is attached to a job; a first message makes its conversation,
        which is remembered.

        What does not fit stays in the box, and the user is asked. Gives values for `sent`.
        """
        shown = self.attached.all(attached)
        if not (text.strip() or shown):
            return [gr.skip(), gr.skip(), gr.skip(), gr.skip(), *self.overflow.hide()]
        if conversation_id is not None:
            return await self._send(text, attached, conversation_id)
        made_id = await self._create(documents, form, choices)
        try:
            await self.services.jobs.send(made_id, text, shown)
        except InglenookError:
            await self.services.conversations.purge(made_id)
            raise
        self.attached.sent(attached)
        return ["", "", made_id, made_id, *self.overflow.hide()]

    async def _create(self, documents: str, form: AnswerForm | None, choices: Sequence[Any]) -> str:
        """A conversation by what is chosen on the page; its id."""
        chosen, sampling = self.settings.changes(choices)
        made = await self.services.conversations.create(
            system_prompt=chosen.system_prompt,
            sampling=sampling,
            answer_form=form,
            examples=chosen.examples,
            documents=scope_from(documents),
        )
        return made.conversation_id

    @told
    async def sum_up_file(
        self, conversation_id: str | None, documents: str, form: AnswerForm | None, *choices: Any
    ) -> list[Any]:
        """A summary of the one file that is chosen, section by section. Gives values for `sent`."""
        made_id = conversation_id or await self._create(documents, form, choices)
        try:
            await self.services.jobs.sum_up(made_id)
        except InglenookError:
            if conversation_id is None:
                await self.services.conversations.purge(made_id)
            raise
        return [gr.skip(), gr.skip(), made_id, made_id, *self.overflow.hide()]

    async def send_example(
        self,
        example: gr.SelectData,
        conversation_id: str | None,
        documents: str,
        form: AnswerForm | None,
        *choices: Any,
    ) -> list[Any]:
        text = example.value["text"]
        return await self.send(text, "", conversation_id, documents, form, *choices)

    @told
    async def answer_again(self, conversation_id: str) -> list[Any]:
        """Gives values for `sent`."""
        return await self._again(self.services.jobs.regenerate(conversation_id), conversation_id)

    async def show_before(self, conversation_id: str) -> None:
        await self._show_beside(conversation_id, -1)

    async def show_after(self, conversation_id: str) -> None:
        await self._show_beside(conversation_id, 1)

    @told
    async def _show_beside(self, conversation_id: str, step: int) -> None:
        """Another answer to the same message, with all that was said after it."""
        shown = await self.read(conversation_id, 1)
        if shown.siblings:
            wanted = beside(shown.siblings, shown.last_id, step)
            await self.services.conversations.set_active(conversation_id, wanted)

    @told
    async def continue_from(self, asked: str, conversation_id: str | None) -> list[Any]:
        """Another answer, which goes on from a token that the page's script names. Gives values
        for `sent`."""
        match _wish(asked):
            case {"answer": str(answer_id), "place": int(place), "token": int(token_id)}:
                pass
            case _:
                raise UsageError("It is not known from where to go on: choose a token again.")
        if conversation_id is None:
            raise UsageError("This conversation is gone: it may have been deleted.")
        going_on = self.services.jobs.continue_from(conversation_id, answer_id, place, token_id)
        return await self._again(going_on, conversation_id)

    @told
    async def leave_out(self, text: str, attached: str, conversation_id: str) -> list[Any]:
        return await self._decide(Overflow.DROP, text, attached, conversation_id)

    @told
    async def sum_up(self, text: str, attached: str, conversation_id: str) -> list[Any]:
        return await self._decide(Overflow.SUMMARISE, text, attached, conversation_id)

    @told
    async def enlarge(
        self, context_tokens: int, text: str, attached: str, conversation_id: str
    ) -> list[Any]:
        """Take a larger context, which loads the model again, and go on with what was asked."""
        services = self.services
        services.save_settings(replace(services.settings, context_tokens=context_tokens))
        await services.model.reload()
        return await self._go_on(text, attached, conversation_id)

    async def _decide(
        self, choice: Overflow, text: str, attached: str, conversation_id: str
    ) -> list[Any]:
        """Remember the choice and go on with what was asked."""
        await self.services.conversations.set_overflow(conversation_id, choice)
        return await self._go_on(text, attached, conversation_id)

    async def _go_on(self, text: str, attached: str, conversation_id: str) -> list[Any]:
        # With neither it was another answer that did not fit.
        if text.strip() or self.attached.all(attached):
            return await self._send(text, attached, conversation_id)
        again = self.services.jobs.regenerate(conversation_id)
        return await self._again(again, conversation_id)

    async def _send(self, text: str, attached: str, conversation_id: str) -> list[Any]:
        """Values for `sent`: empty boxes, or the question what to do."""
        shown = self.attached.all(attached)
        sending = self.services.jobs.send(conversation_id, text, shown)
        values = await self._try(sending, conversation_id)
        if values[0] == "":
            self.attached.sent(attached)
        return values

    async def _again(self, starting: Awaitable[object], conversation_id: str) -> list[Any]:
        """Values for `sent` that leave the boxes as they are."""
        return [gr.skip(), gr.skip(), *(await self._try(starting, conversation_id))[2:]]

    async def _try(self, starting: Awaitable[object], conversation_id: str) -> list[Any]:
        try:
            await starting
        except DoesNotFit as error:
            return [gr.skip(), gr.skip(), gr.skip(), gr.skip(), *self.overflow.ask(error.outlook)]
        return ["", "", conversation_id, conversation_id, *self.overflow.hide()]

    async def measure(
        self,
        text: str,
        attached: str,
        conversation_id: str | None,
        documents: str,
        prompt: str,
        examples: str,
    ) -> Any:
        """How full the context is; nothing at all when that cannot be said."""
        try:
            begun = prompt, read_examples(examples)
            shown = self.attached.all(attached)
            fill = await self.services.sights.fill(
                conversation_id, text, begun, shown, scope_from(documents)
            )
            is_empty = not (text or shown) and await self._is_empty(conversation_id)
            return self.meter.show(fill, is_empty)
        except InglenookError:
            return gr.update(visible=False)

    async def _is_empty(self, conversation_id: str | None) -> bool:
        if conversation_id is None:
            return True
        return await self.services.conversations.num_messages(conversation_id) == 0

    async def measure_typing(
        self,
        text: str,
        attached: str,
        conversation_id: str | None,
        documents: str,
        prompt: str,
        examples: str,
    ) -> Any:
        await asyncio.sleep(TYPING_PAUSE_S)
        return await self.measure(text, attached, conversation_id, documents, prompt, examples)

    @told
    async def stop(self, conversation_id: str | None) -> None:
        if conversation_id:
            self.services.jobs.stop(conversation_id)

    async def stay(self, request: gr.Request) -> AsyncIterator[None]:
        """Hold the page's stream open, as long as the tab is.

        Gradio closes the stream after the last running event. An event that begins in that moment
        is lost: its messages go into the closed stream, or it is ended as one that nobody reads.
        """
        try:
            while True:
                await asyncio.sleep(STAY_S)
                # Only here Gradio can tell that the tab is gone.
                yield None
        finally:
            self.tabs.leave(str(request.session_hash))


def _wish(asked: str) -> object:
    try:
        return json.loads(asked)
    except (ValueError, RecursionError):
        return None
