"""A whole model behind the house's face."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from engine.adapter import Adapter
from engine.async_engine import AsyncEngine
from engine.backends.choice import SPIN_COUNT, is_safetensors, may_have_card, open_backend
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.torch.backend import NO_MEDIA, TorchBackend, try_kernels
from engine.backends.torch.device import Device
from engine.config import EngineConfig
from engine.errors import InvalidParams, ModelDamaged, ModelUnsupported, OutOfMemory
from engine.loading import files_of, load
from engine.request import FinishReason
from engine.sampling_params import SamplingParams
from kernels.quant.planes import QuantizedMatrix
from kernels.shapes import LLAMA_8B
from kernels.specs import ModelShape
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.engine.backends.torch.tiny_models import save_tiny
from tests.engine.backends.torch.torch_run import greedy, logits_of, opened

GREEDY = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True, loop_guard=False)


def config_of(path: Path, **changes: object) -> EngineConfig:
    return replace(
        EngineConfig(model_path=path, context_tokens=512, threads=1, backend="torch"), **changes
    )


def test_it_says_that_it_takes_the_slow_path(tmp_path: Path) -> None:
    backend = TorchBackend(config_of(write_tiny_model(tmp_path / "tiny.gguf")))
    assert backend.info.notice.endswith("which is slow: --backend llama is faster on a processor.")
    assert backend.kind == "torch"
    backend.close()
    backend.close()


def test_the_facts_of_a_gguf_file_are_those_that_llama_cpp_tells(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", sampling={"temp": 0.5})
    ours, theirs = TorchBackend(config_of(path)), LlamaBackend(config_of(path))
    expected = replace(theirs.info, notice=ours.info.notice, kv_bytes_per_token=2 * 512)
    assert replace(ours.info, quantization="", sampling={}) == replace(
        expected, quantization="", sampling={}
    )
    assert set(ours.info.sampling) == set(theirs.info.sampling) == {"temp"}
    assert ours.max_request_tokens == theirs.max_request_tokens
    text = "a b, c"
    assert ours.tokenizer.encode(text) == theirs.tokenizer.encode(text)
    ours.close()
    theirs.close()


def test_its_kv_is_never_taken_for_that_of_llama_cpp(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    ours, theirs = TorchBackend(config_of(path)), LlamaBackend(config_of(path))
    logits_of(ours, [1, 70, 71, 72], [])
    blob = ours.kv_memory.export(0, 0, 4)
    assert blob is not None
    assert len(ours.kv_memory.namespace) == len(theirs.kv_memory.namespace) == 32
    assert ours.kv_memory.namespace != theirs.kv_memory.namespace
    assert not theirs.kv_memory.restore(0, blob, 0, 4, 4)
    ours.close()
    theirs.close()


def test_kv_in_other_numbers_has_another_name(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    names = set()
    for kv_type in ("auto", "f16", "q8_0"):
        backend = TorchBackend(config_of(path, kv_type=kv_type))
        names.add(backend.kv_memory.namespace)
        assert backend.info.kv_bytes_per_token == backend.kv_memory.bytes_per_token
        backend.close()
    assert len(names) == 3
    again = TorchBackend(config_of(path))
    assert again.kv_memory.namespace in names
    again.close()


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_coarser_kv_gives_nearly_the_same_logits(kv_type: str, tmp_path: Path) -> None:
    save_tiny(tmp_path, "llama")
    token_ids = list(range(5, 60))
    fine = logits_of(opened(tmp_path), token_ids, [30])
    coarse = logits_of(opened(tmp_path, kv_type=kv_type), token_ids, [30])
    apart = np.abs(fine - coarse).max() / np.abs(fine).max()
    assert 0 < apart < 2e-2


def test_weights_that_stay_packed_give_what_unpacked_ones_give(
    starter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_ids = [504, 3575, 282, 4649, 314]
    unpacked = opened(starter)
    expected = logits_of(unpacked, token_ids, [])
    assert isinstance(unpacked.model_runner._decoder.head, torch.Tensor)
    unpacked.close()
    free = psutil.virtual_memory()

    class Less:
        """So much memory that the file fits, and its weights as float32 do not."""

        available = 400_000_000
        total = free.total

    monkeypatch.setattr("psutil.virtual_memory", Less)
    packed = opened(starter)
    assert isinstance(packed.model_runner._decoder.head, QuantizedMatrix)
    np.testing.assert_allclose(logits_of(packed, token_ids, []), expected, rtol=1e-4, atol=1e-4)
    assert greedy(packed, token_ids, 3, 1)
    packed.close()


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(
    starter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class None_:
        available = 1_000_000

    monkeypatch.setattr("psutil.virtual_memory", None_)
    with pytest.raises(OutOfMemory, match="0.1 GB of memory .* 0.0 GB are free"):
        opened(starter)


def test_progress_is_heard_up_to_the_last_byte(tmp_path: Path) -> None:
    save_tiny(tmp_path, "qwen2")
    heard: list[tuple[int, int]] = []
    TorchBackend(config_of(tmp_path), progress=lambda done, total: heard.append((done, total)))
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
    assert heard[-1][0] == heard[-1][1] > 0
    assert len({total for _, total in heard}) == 1


def test_adapters_are_refused_and_pictures_are_not_read(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(ModelUnsupported, match="no adapters"):
        TorchBackend(config_of(path, adapters=(Adapter(path, 1.0),)))
    backend = TorchBackend(config_of(path, mmproj_path=path))
    assert backend.media is None
    assert backend.info.media_refusal == NO_MEDIA
    backend.close()


def test_recurrent_models_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match="of the kind mamba"):
        TorchBackend(config_of(write_tiny_model(tmp_path / "tiny.gguf", "mamba")))


def test_a_folder_is_answered_by_torch_and_a_file_by_llama_cpp(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    save_tiny(folder, "llama")
    path = write_tiny_model(tmp_path / "tiny.gguf")
    assert is_safetensors(folder) and not is_safetensors(path) and not is_safetensors(tmp_path)
    by_kind = {}
    for model in (folder, path):
        backend = open_backend(config_of(model, backend="auto"))
        by_kind[model] = backend.kind
        backend.close()
    assert by_kind == {folder: "torch", path: "llama"}
    assert files_of(path) == [path]
    assert files_of(folder) == [folder / "model.safetensors", folder / "config.json"]


def test_without_torch_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.backends.choice.find_spec", lambda name: None)
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(ModelUnsupported, match="install the extra"):
        open_backend(config_of(path))
    assert not may_have_card()
    backend = open_backend(config_of(path, backend="auto"))
    assert backend.kind == "llama" and backend.info.notice == ""
    backend.close()


def test_a_backend_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParams, match="auto, llama, torch"):
        config_of(tmp_path, backend="cuda")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_damaged_folder_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    save_tiny(tmp_path, "llama")
    file = tmp_path / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ModelDamaged):
        TorchBackend(config_of(tmp_path))


async def test_the_engine_answers_with_it(tmp_path: Path) -> None:
    save_tiny(tmp_path, "qwen3")
    loaded = load(config_of(tmp_path))
    assert isinstance(loaded.engine, AsyncEngine) and loaded.backend == "torch"
    try:
        prompt = loaded.tokenizer.encode("abc dab cab abc")
        texts = []
        for _ in range(2):
            with loaded.engine.submit(prompt, GREEDY) as stream:
                outputs = [output async for output in stream]
            assert outputs[-1].finish_reason is FinishReason.LENGTH
            texts.append([each for output in outputs for each in output.token_ids])
        assert texts[0] == texts[1] and len(texts[0]) == 8
        timings = outputs[-1].timings
        assert timings is not None and timings.cached_tokens == len(prompt) - 1
        alone = opened(tmp_path)
        assert greedy(alone, prompt, 8) == texts[0]
    finally:
        loaded.close()


def test_threads_of_the_processor_soon_sleep_unless_somebody_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.backends.choice.may_have_card", lambda: False)
    path = write_tiny_model(tmp_path / "tiny.gguf")
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    open_backend(config_of(path)).close()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    open_backend(config_of(path)).close()
    assert os.environ["GOMP_SPINCOUNT"] == SPIN_COUNT


def test_what_is_wrong_with_kernels_is_said_and_what_cannot_be_built_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device(torch.device("cuda", 0), torch.bfloat16, "NVIDIA X")
    wrong = {"rms_norm": "The kernel of rms_norm is off, so a slower way is taken."}
    monkeypatch.setattr("engine.backends.torch.backend.self_test", lambda shape, where: wrong)
    monkeypatch.setattr("engine.backends.torch.backend.warm_up", lambda shape, where: iter([1.0]))
    assert try_kernels(LLAMA_8B, device) == list(wrong.values())

    def fails(shape: ModelShape, where: torch.device) -> Iterator[float]:
        yield 0.5
        raise RuntimeError("many words\nno C compiler")

    monkeypatch.setattr("engine.backends.torch.backend.warm_up", fails)
    with pytest.raises(ModelUnsupported, match=r"for NVIDIA X \(no C compiler\): use --backend"):
        try_kernels(LLAMA_8B, device)
