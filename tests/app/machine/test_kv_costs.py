"""What a conversation's KV takes: the formula, and what was weighed."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.machine.kv_costs import USUAL_TOKENS, kv_costs_of, random_prompt, weigh
from app.paths import Paths
from app.services import Services
from engine.config import EngineConfig
from tests.fakes_machine import KV
from tests.fakes_model import FakeEngine, fake_chat_model


def test_the_formula_is_two_times_layers_heads_numbers_and_bytes(starter: Path) -> None:
    kv = kv_costs_of(EngineConfig(model_path=starter), 10**9)
    assert kv.formula == "2 x 30 layers x 3 KV heads x 64 x 2 bytes = 23,040 bytes"
    assert kv.bytes_per_token == 2 * 30 * 3 * 64 * 2
    assert (kv.context_tokens, kv.is_exact, kv.kv_type) == (8192, True, "f16")


def test_what_was_chosen_counts(starter: Path) -> None:
    chosen = EngineConfig(model_path=starter, kv_type="q8_0", context_tokens=4096)
    kv = kv_costs_of(chosen, 10**9)
    assert kv.bytes_per_token == 23_040 * 17 // 32 and kv.context_tokens == 4096
    assert "x 1.062 bytes = 12,240 bytes" in kv.formula


def test_heads_whose_keys_and_values_differ_are_added() -> None:
    kv = replace(KV, key_size=96, value_size=64)
    assert kv.formula.startswith("30 layers x 3 KV heads x (96 + 64) x 2 bytes")


def test_so_many_conversations_fit() -> None:
    assert KV.bytes_per_conversation == 23_040 * USUAL_TOKENS
    assert (KV.num_in_cells, KV.num_in_ram, KV.num_on_disk) == (4, 21, 217)


@pytest.mark.model
async def test_what_is_weighed_is_the_formula_and_llama_cpps_lists(
    paths: Paths, starter: Path
) -> None:
    services = Services(paths)
    weighed = await weigh(services)
    again = await weigh(services)
    usage = (await services.chat_model()).loaded.engine.kv_usage
    await services.close()
    assert weighed is not None and again is not None
    assert 23_040 <= weighed < 1.02 * 23_040
    assert 23_040 <= again < 1.02 * 23_040
    assert usage.num_segments == 0, "what was weighed has stayed"


def test_a_prompt_by_chance_has_no_control_tokens_and_fits() -> None:
    loaded = fake_chat_model(FakeEngine(max_request_tokens=100)).loaded
    special = {each.token_id for each in loaded.tokenizer.control_tokens.values()}
    prompt = random_prompt(loaded, 1000)
    assert len(prompt) == 50 and not special & set(prompt)
    assert len(random_prompt(loaded, 0)) == 1
