"""The page: where its parts stand, and which event calls which handler."""

import json
from pathlib import Path
from typing import Any

import gradio as gr

from app.chat.message import Conversation
from app.ui.abreast import Abreast
from app.ui.answer_form import FormDialog
from app.ui.boundary import told
from app.ui.chat import WINDOW, Chat
from app.ui.machine import MachinePanel
from app.ui.one_stream import OneStream
from app.ui.room import Services
from app.ui.sampling import catalogue
from app.ui.saw import SawPanel
from app.ui.settings import SettingsPanel
from app.ui.sidebar import Header, Sidebar
from app.ui.start_note import StartNote
from app.ui.this_machine import ThisMachinePanel
from engine.errors import NotFound

STATIC = Path(__file__).parent / "static"
SHEETS = (
    "elements",
    "asking",
    "incoming",
    "page",
    "attached",
    "answer_form",
    "formed",
    "sampling",
    "presets",
    "examples",
    "prospect",
    "sheet",
    "sure",
    "versions",
    "start_note",
    "drop",
    "models",
    "documents",
    "documents_rows",
    "documents_places",
    "documents_files",
    "documents_search",
    "documents_collections",
    "passage",
    "asks",
    "this_machine",
)
"""Each a style, a script, or both; what comes first is used by those that follow."""

# Past Gradio's queue, which only streams need. The page's script tells the errors.
ACTING: dict[str, Any] = {
    "queue": False,
    "api_visibility": "private",
    "show_progress": "hidden",
}
WHILE_TYPING = ACTING | {"trigger_mode": "always_last"}
# Gradio's default of one run at a time would make a second tab wait for the first.
FOLLOWING = ACTING | {"queue": True, "concurrency_limit": None, "trigger_mode": "multiple"}


def head() -> str:
    """Style and script of the page. In the head: handlers compiled from strings are not allowed
    by the security policy, and a style given as `css` is doubled by Gradio."""
    style, script = (
        "\n".join(
            file.read_text(encoding="utf-8")
            for name in SHEETS
            if (file := STATIC / f"{name}.{end}").is_file()
        )
        for end in ("css", "js")
    )
    # It stands inside an element, which a text in it must not end.
    controls = json.dumps(catalogue()).replace("<", "\\u003c")
    data = f'<script type="application/json" id="sampling_catalogue">{controls}</script>'
    return f"<style>{style}</style>{data}<script>{script}</script>"


def build(services: Services) -> gr.Blocks:
    """The whole page."""
    blocks = OneStream(
        title="Inglenook", fill_height=True, fill_width=True, analytics_enabled=False
    )
    with blocks:
        page = Page(services)
        page.opens(blocks)
        page.lists()
        page.names_and_deletes()
        page.chats()
        page.keeps_abreast()
        page.outgrows()
        page.chooses()
        page.keeps()
        page.looks()
        page.looks_at_the_machine()
        page.chooses_forms()
        page.chooses_files()
        page.presets()
        page.looks_ahead()
    return blocks


class Page:
    """The widgets, what a tab remembers, and the wires between them; built inside Blocks.

    A tab remembers which conversation is open, how much of it is shown, and what was deleted.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        # The browser may forge this; it is only an id, and it is looked up again.
        self.last = gr.BrowserState(None, storage_key="inglenook_last", secret="inglenook")
        self.conversation = gr.State(None)
        self.num_shown = gr.State(WINDOW)
        self.deleted = gr.State(None)
        with gr.Sidebar(width=280, elem_id="left"):
            self.sidebar = Sidebar(services)
        with gr.Sidebar(width=320, position="right", open=False, elem_id="right") as self.right:
            self.settings = SettingsPanel(services)
            self.machine = MachinePanel(services)
            self.looking = gr.Button("This machine", size="sm", elem_id="machine_open")
        with gr.Column(elem_id="middle", scale=1):
            StartNote(services.start_facts)
            self.header = Header(services)
            self.chat = Chat(services, self.settings)
            self.abreast = Abreast(services, self.chat)
        self.saw = SawPanel(services)
        self.this_machine = ThisMachinePanel(services)
        self.forms = FormDialog(services, self.chat.answer_as)
        self.opening = [
            self.conversation,
            self.num_shown,
            *self.header.outputs,
            *self.settings.outputs,
            *self.chat.overflow.outputs,
            *self.chat.answer_as.outputs,
            *self.chat.asks.outputs,
        ]

    @told
    async def open(self, conversation_id: str | None) -> tuple[Any, ...]:
        """Values for `opening`; an id that is gone opens a new chat."""
        found = await self._find(conversation_id)
        found_id = found.conversation_id if found else None
        return (
            found_id,
            WINDOW,
            *self.header.show(found),
            *self.settings.show(found),
            *self.chat.overflow.hide(),
            *self.chat.answer_as.show(found.answer_form if found else None),
            *await self.chat.asks.show(found),
        )

    async def arrive(self, last_id: str | None, conversation_id: str | None) -> tuple[Any, ...]:
        """As `open`, for a tab that loads; who was quick may have begun a conversation."""
        return await self.open(conversation_id or last_id)

    @told
    async def refresh(self, query: str, conversation_id: str | None) -> tuple[Any, ...]:
        """The list, and what the browser remembers as open."""
        return *(await self.sidebar.refresh(query, conversation_id)), conversation_id

    @told
    async def name(self, conversation_id: str | None) -> tuple[Any, ...]:
        """A first message gives a conversation its title."""
        return self.header.show(await self._find(conversation_id))

    async def _find(self, conversation_id: str | None) -> Conversation | None:
        if conversation_id is None:
            return None
        try:
            return await self.services.conversations.get(conversation_id)
        except NotFound:
            return None

    def opens(self, blocks: gr.Blocks) -> None:
        blocks.load(self.chat.stay, None, None, **FOLLOWING)
        known = [self.last, self.conversation]
        self._then_show(blocks.load(self.arrive, known, self.opening, **ACTING))

    def lists(self) -> None:
        sidebar = self.sidebar
        opened = sidebar.list.input(self.open, sidebar.list, self.opening, **ACTING)
        self._then_show(opened)
        # The list already marks what could not be opened.
        self._refreshing(opened.failure, ACTING)
        marked = [self.conversation, sidebar.list]
        self._then_open(sidebar.new.click(lambda: (None, None), None, marked, **ACTING))
        begun = sidebar.temporary.click(sidebar.begin_temporary, None, marked, **ACTING)
        self._then_open(begun)
        self._refreshing(sidebar.search.change, WHILE_TYPING)

    def names_and_deletes(self) -> None:
        header, conversation = self.header, self.conversation
        for event in (header.title.submit, header.title.blur):
            titled = [conversation, header.title]
            renamed = event(header.rename, titled, header.title, **ACTING)
            self._refreshing(renamed.success, ACTING)
        gone = [conversation, self.deleted, header.undo_bar, header.deleted]
        self._then_open(
            header.delete.click(header.delete_conversation, conversation, gone, **ACTING)
        )
        back = [conversation, self.deleted, header.undo_bar]
        self._then_open(header.undo.click(header.undo_delete, self.deleted, back, **ACTING))
        header.dismiss.click(lambda: gr.update(visible=False), None, header.undo_bar, **ACTING)

    def chats(self) -> None:
        chat, conversation = self.chat, self.conversation
        choices = [chat.asks.choice, chat.answer_as.form, *self.settings.choices]
        given = [chat.composer, chat.attached.ids, conversation, *choices]
        self._then_answer(chat.composer.submit(chat.send, given, self._sent, **ACTING))
        given = [conversation, *choices]
        chosen = chat.chatbot.example_select(chat.send_example, given, self._sent, **ACTING)
        self._then_answer(chosen)
        chat.composer.stop(chat.stop, conversation, None, **ACTING)
        again = chat.regenerate.click(chat.answer_again, conversation, self._sent, **ACTING)
        self._then_follow(again)
        for button, show in (
            (chat.versions.before, chat.show_before),
            (chat.versions.after, chat.show_after),
        ):
            self._then_follow(button.click(show, conversation, None, **ACTING))
        asked = [chat.continue_asked, conversation]
        self._then_follow(
            chat.continue_asked.change(chat.continue_from, asked, self._sent, **ACTING)
        )
        more = self.num_shown
        self._then_follow(chat.earlier.click(lambda shown: shown + WINDOW, more, more, **ACTING))

    def keeps_abreast(self) -> None:
        """What is said in another tab is shown in this one."""
        abreast = self.abreast
        given = [abreast.told, self.conversation, abreast.mark]
        abreast.told.change(abreast.look, given, abreast.stale, **ACTING)
        self._following(abreast.stale.change)

    def outgrows(self) -> None:
        """What is done with a conversation that no longer fits, and how full it is."""
        chat, panel = self.chat, self.chat.overflow
        given = [chat.composer, chat.attached.ids, self.conversation]
        for button, decide in ((panel.drop, chat.leave_out), (panel.summarise, chat.sum_up)):
            decided = button.click(decide, given, self._sent, **ACTING)
            chosen = [self.conversation], self.settings.overflow
            decided.success(self.show_choice, *chosen, **ACTING)
            self._then_answer(decided)
        begun = panel.larger.click(panel.loading, panel.larger_tokens, panel.outputs, **ACTING)
        given = [panel.larger_tokens, *given]
        enlarged = begun.success(chat.enlarge, given, self._sent, **ACTING)
        enlarged.failure(panel.hide, None, panel.outputs, **ACTING)
        self._then_answer(enlarged)
        panel.cancel.click(panel.hide, None, panel.outputs, **ACTING)
        typed = self._typed
        # Not `input`: the library knows only keys by that, and no pasted text.
        chat.composer.change(chat.measure_typing, typed, chat.meter.bar, **WHILE_TYPING)
        attached = chat.attached
        shown = attached.ids.change(attached.show, attached.ids, attached.strip, **ACTING)
        self._measuring(shown.then)

    def looks(self) -> None:
        """What an answer was made from."""
        saw = self.saw
        saw.asked.change(saw.open, saw.asked, saw.outputs, **ACTING)
        saw.close.click(saw.shut, None, [*saw.outputs, saw.asked], **ACTING)

    def looks_at_the_machine(self) -> None:
        """What this machine is, and how fast; the first time it is measured."""
        sheet = self.this_machine
        opened = self.looking.click(sheet.open, None, sheet.outputs, **ACTING)
        looked = opened.success(sheet.look_once, None, sheet.content, **ACTING)
        looked.failure(sheet.say_nothing, None, sheet.doing, **ACTING)
        sheet.close.click(sheet.shut, None, sheet.sheet, **ACTING)
        self._serves_the_card(opened)
        for button, say, do in (
            (sheet.again, sheet.say_measuring, sheet.look_again),
            (sheet.test, sheet.say_testing, sheet.try_out),
        ):
            begun = button.click(say, None, sheet.doing, **ACTING)
            done = begun.success(do, None, sheet.content, **ACTING)
            done.failure(sheet.say_nothing, None, sheet.doing, **ACTING)

        asking = sheet.updates.click(sheet.say_asking, None, sheet.newest, **ACTING)
        asked = asking.success(sheet.ask_for_updates, None, sheet.newest, **ACTING)
        asked.failure(sheet.say_nothing, None, sheet.newest, **ACTING)

    def _serves_the_card(self, opened: Any) -> None:
        """What an NVIDIA card needs: asked about, installed, removed."""
        card = self.this_machine.card
        shown = opened.success(card.show, None, card.outputs, **ACTING)
        shown.success(card.follow, None, card.outputs, **FOLLOWING)
        card.look.click(card.look_at_it, None, card.outputs, **FOLLOWING)
        card.install.click(card.install_it, None, card.outputs, **FOLLOWING)
        card.stop.click(card.end_it, None, None, **ACTING)
        card.remove.click(card.ask_removal, None, card.outputs, **ACTING)
        card.really.click(card.remove_it, None, card.outputs, **ACTING)
        card.keep.click(card.show, None, card.outputs, **ACTING)

    def chooses_forms(self) -> None:
        """In which form the next answers come."""
        dialog, answer_as = self.forms, self.chat.answer_as
        opened = answer_as.button.click(dialog.open, answer_as.form, dialog.outputs, **ACTING)
        opened.success(dialog.judge, dialog.judged, dialog.verdict, **ACTING)
        shown = [*dialog.parts, *dialog.verdict]
        dialog.way.input(dialog.switch, dialog.judged, shown, **ACTING)
        dialog.ready.input(dialog.preview, dialog.ready, dialog.example, **ACTING)
        for text in dialog.written:
            # Not `input`, which knows no pasted text.
            text.change(dialog.judge_typing, dialog.judged, dialog.verdict, **WHILE_TYPING)
        for choice in dialog.chosen:
            choice.input(dialog.judge, dialog.judged, dialog.verdict, **ACTING)
        given = [self.conversation, *dialog.judged]
        taken = [dialog.sheet, *dialog.verdict, *answer_as.outputs]
        dialog.use.click(dialog.take, given, taken, **ACTING)
        dialog.cancel.click(dialog.shut, None, dialog.sheet, **ACTING)

    def chooses_files(self) -> None:
        """Which of the user's files the next questions are asked of."""
        asks = self.chat.asks
        asks.choice.focus(asks.offer, asks.choice, asks.choice, **ACTING)
        chosen = [self.conversation, asks.choice]
        self._measuring(asks.choice.input(asks.choose, chosen, asks.choice, **ACTING).success)
        for event in (asks.choice.change, asks.stale.change):
            event(asks.look, chosen, asks.look_outputs, **ACTING)
        given = [asks.told, *chosen, asks.mark]
        asks.told.change(asks.check, given, asks.stale, **ACTING)
        self._measuring(asks.leave.click(asks.ask_without, chosen, asks.choice, **ACTING).success)
        ticked = asks.whole.input(asks.read_whole, [*chosen, asks.whole], asks.choice, **ACTING)
        self._measuring(ticked.success)
        given = [self.conversation, asks.choice, self.chat.answer_as.form, *self.settings.choices]
        self._then_answer(asks.sum_up.click(self.chat.sum_up_file, given, self._sent, **ACTING))
        given = [self.conversation, asks.dropped, asks.choice]
        taken = asks.dropped.change(asks.take, given, [asks.choice, asks.dropped], **ACTING)
        self._measuring(taken.success)

    @told
    async def show_choice(self, conversation_id: str | None) -> Any:
        """What was decided once stands in the settings, where it can be changed."""
        return self.settings.show_overflow(await self._find(conversation_id))

    @property
    def _sent(self) -> list[Any]:
        chat = self.chat
        boxes = [chat.composer, chat.attached.ids]
        return [*boxes, self.conversation, self.last, *chat.overflow.outputs]

    def chooses(self) -> None:
        settings = self.settings
        changes = [
            settings.system_prompt.blur(self.settings.save, self._chosen, settings.faults, **ACTING)
        ]
        for box in (settings.sampling, settings.examples):
            # Not `input`: the library knows only keys by that.
            changes.append(box.change(settings.save, self._chosen, settings.faults, **WHILE_TYPING))
        for changed in changes:
            self._naming(changed)
            self._measuring(changed.success)
            self._looking_ahead(changed.success)
        settings.keep.click(settings.keep_choices, settings.choices, settings.kept, **ACTING)
        when_full = [self.conversation, settings.overflow]
        settings.overflow.input(settings.save_overflow, when_full, None, **ACTING)

    def presets(self) -> None:
        settings, presets, form = self.settings, self.settings.presets, self.chat.answer_as.form
        given = [self.conversation, presets.list, *self._now]
        outputs = [*settings.choices, *self.chat.answer_as.outputs]
        taken = presets.list.input(self.take_preset, given, outputs, **ACTING)
        saved = taken.success(settings.save, self._chosen, settings.faults, **ACTING)
        self._naming(saved)
        self._measuring(saved.success)
        self._looking_ahead(saved.success)
        form.change(settings.name_preset, self._now, presets.outputs, **ACTING)
        presets.save.click(presets.ask_save, self._now, presets.asking, **ACTING)
        presets.rename.click(presets.ask_rename, presets.list, presets.asking, **ACTING)
        presets.delete.click(presets.ask_delete, presets.list, presets.asking, **ACTING)
        presets.cancel.click(presets.leave, None, presets.asking[:2], **ACTING)
        done = [*presets.outputs, *presets.asking, presets.said]
        given = [presets.task, presets.list, presets.name, presets.parts, *self._now]
        for event in (presets.do.click, presets.name.submit):
            self._naming(event(presets.answer, given, done, **ACTING))
        presets.file.change(presets.take_file, presets.file, done, **ACTING)
        # What the model's file recommends is known when it is loaded.
        self.right.expand(settings.name_preset, self._now, presets.outputs, **ACTING)

    def looks_ahead(self) -> None:
        """What the choices do, while that can be seen."""
        prospect = self.settings.prospect
        for event, is_open in ((prospect.fold.expand, True), (prospect.fold.collapse, False)):
            opened = event(lambda is_open=is_open: is_open, None, prospect.is_open, **ACTING)
            self._looking_ahead(opened.success)

    def _looking_ahead(self, event: Any) -> None:
        prospect = self.settings.prospect
        given = [prospect.is_open, *self._chosen]
        event(prospect.look, given, prospect.chart, **WHILE_TYPING)

    @told
    async def take_preset(self, conversation_id: str | None, name: str, *now: Any) -> list[Any]:
        """Values for the choices, and for the button at the message box."""
        *choices, form = await self.settings.take_preset(conversation_id, name, *now)
        return [*choices, *self.chat.answer_as.show(form)]

    @property
    def _chosen(self) -> list[Any]:
        return [self.conversation, *self.settings.choices]

    @property
    def _now(self) -> list[Any]:
        """The choices, and the form of the next answers."""
        return [*self.settings.choices, self.chat.answer_as.form]

    @property
    def _typed(self) -> list[Any]:
        """What fills the context, or would."""
        settings = self.settings
        boxes = [self.chat.composer, self.chat.attached.ids]
        begun = [self.chat.asks.choice, settings.system_prompt, settings.examples]
        return [*boxes, self.conversation, *begun]

    def _naming(self, changed: Any) -> None:
        presets = self.settings.presets
        changed.success(self.settings.name_preset, self._now, presets.outputs, **ACTING)

    def keeps(self) -> None:
        """Memory, its figures, and how all answers are given."""
        machine = self.machine
        machine.memory.expand(machine.open, None, machine.opened, **ACTING)
        machine.memory.expand(lambda: gr.Timer(active=True), None, machine.timer, **ACTING)
        machine.memory.collapse(lambda: gr.Timer(active=False), None, machine.timer, **ACTING)
        machine.timer.tick(machine.look, None, machine.figures, **ACTING)
        for dropdown in (machine.context, machine.kv_type):
            dropdown.input(machine.keep_for_loading, machine.at_load, machine.pending, **ACTING)
        for number in (machine.threads, machine.batch):
            for event in (number.blur, number.submit):
                event(machine.keep_for_loading, machine.at_load, machine.pending, **ACTING)
        for event in (machine.rest.blur, machine.rest.submit):
            event(machine.keep_rest, machine.rest, None, **ACTING)
        for number in machine.budgets:
            for event in (number.blur, number.submit):
                event(machine.limit, machine.budgets, machine.figures, **ACTING)
        loaded = [*machine.pending, *machine.figures]
        loading = machine.reload.click(
            lambda: "Loading the model…", None, machine.reload_note, **ACTING
        )
        loading.success(machine.load_again, None, loaded, **ACTING)
        machine.forget.click(machine.forget_all, None, machine.figures, **ACTING)
        machine.answers.expand(machine.show_switches, None, machine.switches, **ACTING)
        reproducible, titles, likelihoods = machine.switches
        likelihoods.input(machine.keep_likelihoods, likelihoods, None, **ACTING)
        reproducible.input(machine.keep_reproducible, reproducible, None, **ACTING)
        titles.input(machine.keep_titles, titles, None, **ACTING)

    def _refreshing(self, event: Any, how: dict[str, Any]) -> None:
        sidebar = self.sidebar
        given = [sidebar.search, self.conversation]
        event(self.refresh, given, [sidebar.list, sidebar.nothing, self.last], **how)

    def _then_follow(self, event: Any) -> None:
        self._following(event.success)
        self._refreshing(event.success, ACTING)

    def _following(self, event: Any) -> None:
        given = [self.conversation, self.num_shown]
        followed = event(self.abreast.follow, given, self.abreast.outputs, **FOLLOWING)
        self._measuring(followed.then)
        self._looking_ahead(followed.then)

    def _measuring(self, event: Any) -> None:
        event(self.chat.measure, self._typed, self.chat.meter.bar, **ACTING)

    def _then_open(self, event: Any) -> None:
        self._then_show(event.success(self.open, self.conversation, self.opening, **ACTING))

    def _then_show(self, opened: Any) -> None:
        # The answer may still be written; how full the context is need not wait for its end.
        self._measuring(opened.success)
        self._looking_ahead(opened.success)
        self._then_follow(opened)

    def _then_answer(self, event: Any) -> None:
        # Also where it was refused, as when the file that is asked has gone.
        asks = self.chat.asks
        event.then(asks.look, [self.conversation, asks.choice], asks.look_outputs, **ACTING)
        event.success(self.name, self.conversation, self.header.outputs, **ACTING)
        self._then_follow(event)
