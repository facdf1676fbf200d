"""What memory costs and how much of it is used, as tables for the settings."""

from app.memory import Memory, bytes_in_words
from app.ui.verbatim import show_verbatim


def costs(memory: Memory) -> str:
    """What the loaded model takes, in one sentence and a table."""
    each = memory.kv_bytes_per_token
    rows = [
        ("The model itself", bytes_in_words(memory.num_bytes)),
        (
            f"Context of {memory.context_tokens:,} tokens, {bytes_in_words(each)} each",
            bytes_in_words(memory.context_bytes),
        ),
        ("Free on this machine", bytes_in_words(memory.available)),
    ]
    return _table(rows, f"{show_verbatim(memory.model)} takes")


def usage(memory: Memory) -> str:
    """What is kept of conversations now."""
    used = memory.usage
    rows = [
        ("Now in RAM", f"{bytes_in_words(used.ram_bytes)} of {bytes_in_words(used.ram_budget)}"),
        (
            "Now on the disk",
            f"{bytes_in_words(used.disk_bytes)} of {bytes_in_words(used.disk_budget)}",
        ),
        ("Written since the start", bytes_in_words(used.bytes_written)),
    ]
    tokens = used.ram_bytes + used.disk_bytes
    about = tokens // memory.kv_bytes_per_token if memory.kv_bytes_per_token else 0
    note = f'<p class="note">{show_verbatim(used.notice)}</p>' if used.notice else ""
    return _table(rows, f"Kept for later, about {about:,} tokens") + note


def _table(rows: list[tuple[str, str]], caption: str) -> str:
    body = "".join(f"<tr><th scope=row>{name}</th><td>{value}</td></tr>" for name, value in rows)
    return f'<table class="costs"><caption>{caption}</caption>{body}</table>'
