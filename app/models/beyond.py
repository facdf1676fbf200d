"""A context that is larger than what a model was made for."""


def too_large(context_tokens: int | None, trained_context: int) -> str:
    """What a context beyond the model's own is good for, as a sentence; empty for others."""
    if context_tokens is None or context_tokens <= trained_context:
        return ""
    return (
        f"This model was made for {trained_context:,} tokens, and no chat uses more than that: the"
        " rest only holds other chats beside it."
    )
