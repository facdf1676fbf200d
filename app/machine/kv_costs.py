"""What a conversation's KV takes: by the formula, by weighing it, and how many fit."""

import random
from dataclasses import dataclass

from app.machine.home import Home
from engine.config import EngineConfig
from engine.kv.segment import Belonging
from engine.loading import LoadedModel
from engine.request import RequestOptions
from engine.sampling_params import SamplingParams

USUAL_TOKENS = 2_000
"""A conversation of some ten turns."""
WEIGHED_TOKENS = 64
OURS = Belonging(owner="tmp-doctor")
"""Of nothing that is read or written to measure anything stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KVCosts:
    """Of one model, kept as `kv_type`. `bytes_per_token` by the formula: K and V of each layer,
    each KV head, each number of a head. `weighed_bytes_per_token` is what llama.cpp's state of a
    conversation took, with its own lists of cells; None: nothing could be weighed.

    Not `is_exact`: an upper bound, because some layers are recurrent and have none.
    """

    kv_type: str
    num_layers: int
    num_heads: int
    key_size: int
    value_size: int
    bytes_per_number: float
    bytes_per_token: int
    is_exact: bool
    context_tokens: int
    ram_budget: int
    disk_budget: int
    weighed_bytes_per_token: float | None = None

    @property
    def formula(self) -> str:
        numbers = (
            f"2 x {self.num_layers} layers x {self.num_heads} KV heads x {self.key_size}"
            if self.key_size == self.value_size
            else f"{self.num_layers} layers x {self.num_heads} KV heads x"
            f" ({self.key_size} + {self.value_size})"
        )
        return f"{numbers} x {self.bytes_per_number:.4g} bytes = {self.bytes_per_token:,} bytes"

    @property
    def bytes_per_conversation(self) -> int:
        return self.bytes_per_token * USUAL_TOKENS

    @property
    def num_in_cells(self) -> int:
        """Conversations that the model holds at once, beside each other."""
        return self.context_tokens // USUAL_TOKENS

    @property
    def num_in_ram(self) -> int:
        return self.ram_budget // max(1, self.bytes_per_conversation)

    @property
    def num_on_disk(self) -> int:
        return self.disk_budget // max(1, self.bytes_per_conversation)


def kv_costs_of(config: EngineConfig, ram_budget: int) -> KVCosts:
    """By the formula. Opens the file without its weights; raises the ModelError of a bad one."""
    from engine.backends.llama_cpp.model import LlamaModel

    model = LlamaModel(config.model_path, facts_only=True)
    try:
        each, shape = model.kv_dimensions, model.kv_shape
        kv_type = shape.choose(config.kv_type)
        per_token = shape.bytes_per_token(kv_type)
        trained = model.trained_context
    finally:
        model.close()
    return KVCosts(
        kv_type=kv_type,
        num_layers=each.num_layers,
        num_heads=each.num_heads,
        key_size=each.key_size,
        value_size=each.value_size,
        bytes_per_number=per_token / max(1, each.num_numbers),
        bytes_per_token=per_token,
        is_exact=shape.is_exact,
        context_tokens=config.num_cells(trained),
        ram_budget=ram_budget,
        disk_budget=config.kv_disk_bytes,
    )


async def weigh(home: Home) -> float | None:
    """Bytes of a token's KV in llama.cpp's own state: a text is read, and taken out of the cells.

    None: none is kept outside the cells here. Nothing of it stays.
    """
    loaded = (await home.chat_model()).loaded
    engine = loaded.engine
    prompt = random_prompt(loaded, WEIGHED_TOKENS + 1)
    options = RequestOptions(belonging=OURS, num_candidates=1)
    await engine.set_aside()
    before = engine.kv_usage.ram_bytes
    with engine.submit(prompt, SamplingParams(temperature=0, max_tokens=1), options) as stream:
        async for _ in stream:
            pass
    await engine.set_aside()
    taken = engine.kv_usage.ram_bytes - before
    await engine.forget(OURS.owner)
    return taken / len(prompt) if taken > 0 else None


def random_prompt(loaded: LoadedModel, num_tokens: int) -> list[int]:
    """A text that nobody has read before, of so many tokens, or as many as the context has room
    for: ordinary tokens by chance."""
    special = {control.token_id for control in loaded.tokenizer.control_tokens.values()}
    ordinary = [
        token_id for token_id in range(loaded.tokenizer.num_tokens) if token_id not in special
    ]
    count = max(1, min(num_tokens, loaded.engine.max_request_tokens // 2))
    return random.choices(ordinary, k=count)
