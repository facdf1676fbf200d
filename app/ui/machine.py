"""What holds for the whole app: the memory it takes, how it answers, and the door for others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from app.amounts import bytes_in_words
from app.models.beyond import too_large
from app.settings import Settings, check_rest
from app.ui.boundary import told
from app.ui.costs import costs, usage
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.config import DEFAULT_CONTEXT_TOKENS
from engine.errors import InvalidParams

LOOK_S = 2.0
"""How often the live figures are read while they can be seen."""

CONTEXTS: tuple[tuple[str, int], ...] = (
    ("Automatic", 0),
    *((f"{tokens:,} tokens", tokens) for tokens in (2048, 4096, 8192, 16384, 32768, 65536, 131072)),
)
KV_TYPES = (
    ("Automatic", "auto"),
    ("f16: exact", "f16"),
    ("q8_0: half the memory, a little coarser", "q8_0"),
)
GB = 10**9


class MachinePanel:
    """Widgets and handlers. Built inside the page's Blocks.

    The budgets hold at once; the rest from the next loading of the model on, which is offered.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        with gr.Accordion("Memory", open=False, elem_id="memory") as self.memory:
            self._add_loading()
            self._add_budgets()
            self.timer = gr.Timer(LOOK_S, active=False)
        with gr.Accordion("Answers", open=False) as self.answers:
            self._add_switches()
        with gr.Accordion("For other programs", open=False):
            self._add_door()
        self.figures = [self.costs, self.usage]
        self.opened = [
            *self.at_load,
            self.rest,
            *self.budgets,
            *self.figures,
            *self.pending,
        ]

    def _add_loading(self) -> None:
        """What the next loading takes, and the offer of it."""
        settings = self.services.settings
        self.costs = gr.Markdown(elem_id="memory_costs")
        self.context = gr.Dropdown(
            list(CONTEXTS),
            elem_id="context",
            label="Context",
            info=(
                "All conversations together; one may use all of it, up to what the model was"
                f" made for. Automatic is at most {DEFAULT_CONTEXT_TOKENS:,}."
            ),
            value=_shown(settings.context_tokens),
        )
        self.context_note = gr.Markdown(visible=False, elem_id="context_note")
        self.kv_type = gr.Dropdown(
            list(KV_TYPES),
            elem_id="kv_type",
            label="Kept as",
            info="How exactly the model keeps what it has read.",
            value=settings.kv_type,
        )
        self.threads = _number(
            "threads", "Threads", "Processor cores at work; empty adapts by itself.", 1
        )
        self.batch = _number(
            "max_batch_tokens",
            "Read at once",
            "Tokens of a long text in one step; more reads faster and stutters more.",
            32,
        )
        self.rest = _number(
            "unload_after",
            "Free the model after, in minutes",
            "When nobody asks anything; the next message loads it again. Empty keeps it.",
            1,
        )
        self.reload_note = gr.Markdown(visible=False, elem_id="reload_note")
        self.reload = gr.Button(
            "Load the model again now", size="sm", visible=False, elem_id="reload"
        )
        self.at_load = [self.context, self.kv_type, self.threads, self.batch]
        self.pending = [self.context_note, self.reload_note, self.reload]

    def _add_budgets(self) -> None:
        """How much is kept of what was read, and what it takes now."""
        self.ram = _number(
            "kv_ram",
            "Kept in RAM, in GB",
            "Conversations that are not talking; empty is a quarter of what is free. Holds at"
            " once.",
            0,
            whole=False,
        )
        self.disk = _number(
            "kv_disk",
            "Kept on the disk, in GB",
            "So that a chat goes on at once after days; 0 stores nothing. Holds at once.",
            0,
            whole=False,
        )
        self.usage = gr.Markdown(elem_id="kv_usage")
        self.forget = gr.Button("Delete all stored KV", size="sm", elem_id="forget_kv")
        self.budgets = [self.ram, self.disk]

    def _add_switches(self) -> None:
        settings = self.services.settings
        self.reproducible = gr.Checkbox(
            settings.reproducible,
            elem_id="reproducible",
            label="Reproducible",
            info=(
                "At temperature 0 or with a seed, the same conversation gives the same answer,"
                " whatever else went on. Each answer is computed alone, so it may take longer."
            ),
        )
        self.titles = gr.Checkbox(
            settings.automatic_titles,
            elem_id="automatic_titles",
            label="Automatic titles",
            info="The model names a new conversation while nobody waits.",
        )
        self.likelihoods = gr.Checkbox(
            settings.show_likelihoods,
            elem_id="show_likelihoods",
            label="Show how sure the model was",
            info=(
                "Answers from now on are stored with how likely each of their tokens was, and"
                " what else could have come: below an answer, “How sure it was”."
            ),
        )
        self.switches = [self.reproducible, self.titles, self.likelihoods]

    def _add_door(self) -> None:
        """Where other programs reach the model, and with what key."""
        gr.Textbox(
            f"{self.services.url}/v1",
            label="Address",
            info="It speaks OpenAI's chat completions.",
            interactive=False,
            elem_id="api_address",
            buttons=["copy"],
        )
        gr.Textbox(
            self.services.api_key,
            label="Key",
            info="Whoever has it may use the model, and sees no conversation.",
            interactive=False,
            elem_id="api_key",
            buttons=["copy"],
        )

    async def open(self) -> list[Any]:
        """Values for `opened`: as they are now, perhaps changed in another tab."""
        settings = self.services.settings
        return [
            _shown(settings.context_tokens),
            settings.kv_type,
            settings.threads,
            settings.max_batch_tokens,
            settings.unload_after_minutes,
            _in_gb(settings.kv_ram_bytes),
            _in_gb(settings.kv_disk_bytes),
            *await self.look(),
            *self._pending(),
        ]

    async def look(self) -> list[str]:
        """Values for `figures`."""
        memory = self.services.memory
        if memory is None:
            if self.services.model_error:
                return [f"<p>{show_verbatim(self.services.model_error)}</p>", ""]
            return ["<p>The model is not loaded yet.</p>", ""]
        return [costs(memory), usage(memory)]

    @told
    async def keep_for_loading(
        self, context: int, kv_type: str, threads: float | None, batch: float | None
    ) -> list[Any]:
        """Store what the next loading takes. Gives values for `pending`."""
        if context not in dict(CONTEXTS).values():
            raise InvalidParams(f"A context of {context} tokens is not on offer: choose another.")
        settings = replace(
            self.services.settings,
            context_tokens=context or None,
            kv_type=kv_type,
            threads=None if threads is None else int(threads),
            max_batch_tokens=_default("max_batch_tokens") if batch is None else int(batch),
        )
        _check(settings)
        self.services.save_settings(settings)
        return self._pending()

    @told
    async def keep_rest(self, minutes: float | None) -> None:
        """Store after how long the model is freed; holds at once."""
        check_rest(minutes)
        rest = None if minutes is None else int(minutes)
        self.services.save_settings(replace(self.services.settings, unload_after_minutes=rest))

    @told
    async def load_again(self) -> list[Any]:
        """Gives values for `pending` and `figures`."""
        await self.services.model.reload()
        return [*self._pending(), *await self.look()]

    @told
    async def limit(self, ram: float | None, disk: float | None) -> list[str]:
        """Let the budgets hold from now on. Gives values for `figures`."""
        settings = self.services.settings
        # What was left as it is shown is rounded there, and not here.
        ram_bytes, disk_bytes = settings.kv_ram_bytes, settings.kv_disk_bytes
        if ram != _in_gb(ram_bytes):
            ram_bytes = None if ram is None else round(ram * GB)
        if disk != _in_gb(disk_bytes):
            disk_bytes = _default("kv_disk_bytes") if disk is None else round(disk * GB)
        _check(replace(settings, kv_ram_bytes=ram_bytes, kv_disk_bytes=disk_bytes))
        await self.services.model.limit_kv(ram_bytes, disk_bytes)
        return await self.look()

    @told
    async def forget_all(self) -> list[str]:
        """Delete what was read and kept. Gives values for `figures`."""
        await self.services.model.forget_kv()
        return await self.look()

    async def show_switches(self) -> list[bool]:
        """Values for `switches`."""
        settings = self.services.settings
        return [settings.reproducible, settings.automatic_titles, settings.show_likelihoods]

    @told
    async def keep_reproducible(self, is_on: bool) -> None:
        self.services.save_settings(replace(self.services.settings, reproducible=is_on))

    @told
    async def keep_likelihoods(self, is_on: bool) -> None:
        self.services.save_settings(replace(self.services.settings, show_likelihoods=is_on))

    @told
    async def keep_titles(self, is_on: bool) -> None:
        self.services.save_settings(replace(self.services.settings, automatic_titles=is_on))

    def _pending(self) -> list[Any]:
        """Whether the model runs with other choices than those that are stored."""
        memory, settings = self.services.memory, self.services.settings
        if memory is None:
            failed = bool(self.services.model_error)
            return [gr.update(visible=False), gr.update(visible=False), gr.update(visible=failed)]
        has = memory.config
        # With what was chosen for this model alone.
        wanted = settings.engine_config(has.model_path)
        differs = (
            has.context_tokens != wanted.context_tokens
            or has.kv_type != wanted.kv_type
            or has.threads != wanted.threads
            or has.max_batch_tokens != wanted.max_batch_tokens
        )
        tokens = memory.context_of(wanted.context_tokens)
        size = bytes_in_words(memory.bytes_of(tokens, wanted.kv_type))
        room = "" if memory.fits(tokens, wanted.kv_type) else ", more than the machine has free"
        note = (
            "These choices count from the next loading of the model on. The context will take"
            f" {size}{room}."
        )
        beyond = too_large(settings.context_tokens, memory.trained_context)
        return [
            gr.update(visible=bool(beyond), value=beyond),
            gr.update(visible=differs, value=note),
            gr.update(visible=differs),
        ]


def _number(elem_id: str, label: str, info: str, low: int, whole: bool = True) -> Any:
    number: Any = gr.Number(
        elem_id=elem_id,
        label=label,
        info=info,
        precision=0 if whole else None,
        minimum=low,
        step=1 if whole else 0.5,
    )
    # What is possible is for EngineConfig to say, in a sentence; Gradio would refuse every event.
    number.preprocess = lambda value: value
    return number


def _in_gb(num_bytes: int | None) -> float | None:
    """As it is shown in a box."""
    return None if num_bytes is None else round(num_bytes / GB, 2)


def _check(settings: Settings) -> None:
    """Raises InvalidParams for what the model could not be loaded with."""
    settings.engine_config(Path())


def _default(name: str) -> int:
    value: int = getattr(Settings(), name)
    return value


def _shown(context_tokens: int | None) -> int:
    """The entry for a stored choice; one from a settings file may not be among them."""
    return context_tokens if context_tokens in dict(CONTEXTS).values() and context_tokens else 0
