"""What holds for the whole app: how much it keeps in mind, and the door for other programs."""

from dataclasses import replace
from typing import Any

import gradio as gr

from app.ui.boundary import told
from app.ui.room import Services
from engine.config import DEFAULT_CONTEXT_TOKENS
from engine.errors import InvalidParams

CONTEXTS: tuple[tuple[str, int], ...] = (
    ("Automatic", 0),
    *((f"{tokens:,} tokens", tokens) for tokens in (2048, 4096, 8192, 16384, 32768, 65536)),
)


class MachinePanel:
    """Widgets and handlers. Built inside the page's Blocks."""

    def __init__(self, services: Services) -> None:
        self.services = services
        with gr.Accordion("Memory for conversations", open=False):
            self.context = gr.Dropdown(
                list(CONTEXTS),
                elem_id="context",
                label="Context",
                info=(
                    "All conversations together; one may use all of it, up to what the model was"
                    f" made for. Automatic is at most {DEFAULT_CONTEXT_TOKENS:,}. It counts from"
                    " the next start."
                ),
                value=_shown(services.settings.context_tokens),
            )
        with gr.Accordion("For other programs", open=False):
            gr.Textbox(
                f"{services.url}/v1",
                label="Address",
                info="It speaks OpenAI's chat completions.",
                interactive=False,
                elem_id="api_address",
                buttons=["copy"],
            )
            gr.Textbox(
                services.api_key,
                label="Key",
                info="Whoever has it may use the model, and sees no conversation.",
                interactive=False,
                elem_id="api_key",
                buttons=["copy"],
            )

    @told
    async def keep_context(self, tokens: int) -> Any:
        """Store the choice; the running model keeps what it has."""
        if tokens not in dict(CONTEXTS).values():
            raise InvalidParams(f"A context of {tokens} tokens is not on offer: choose another.")
        settings = self.services.settings
        self.services.save_settings(replace(settings, context_tokens=tokens or None))
        return gr.update(value=_shown(tokens or None))


def _shown(context_tokens: int | None) -> int:
    """The entry for a stored choice; one from a settings file may not be among them."""
    return context_tokens if context_tokens in dict(CONTEXTS).values() and context_tokens else 0
