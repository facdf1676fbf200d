"""The switches that third-party libraries read at import: nothing is sent, fetched or recorded."""

import os
from pathlib import Path


def prepare(cache: Path) -> None:
    """Set them. Call this before the first import of gradio or huggingface_hub."""
    os.environ.update(
        GRADIO_ANALYTICS_ENABLED="False",
        # Gradio rebuilds a table of past events after each event; this bounds it.
        GRADIO_ANALYTICS_MAX_EVENTS="1",
        GRADIO_MCP_SERVER="False",
        GRADIO_RUN_HISTORY="False",
        GRADIO_SSR_MODE="False",
        GRADIO_TEMP_DIR=str(cache / "page"),
        HF_HOME=str(cache / "huggingface"),
        HF_HUB_DISABLE_TELEMETRY="1",
        HF_HUB_OFFLINE="1",
    )
    # Gradio's sound library looks for a program at import, and fails where there is no PATH at all.
    os.environ.setdefault("PATH", os.defpath)
