"""Blocks that hold one connection for each tab."""

from typing import Any

import gradio as gr


class OneStream(gr.Blocks):
    """Blocks without Gradio's heartbeat, which would hold a second connection for each tab.

    A browser gives one site six. The heartbeat's other work is to forget a tab an hour after it
    was cut off, which would make a page that slept write into a new conversation.
    """

    def get_config_file(self) -> Any:
        return super().get_config_file() | {"connect_heartbeat": False}
