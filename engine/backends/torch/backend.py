"""The torch backend: one model on a card, or slowly on the processor."""

import logging
from dataclasses import replace
from time import monotonic

from engine.backends.torch.device import Device, choose_device
from engine.backends.torch.gguf_model import open_gguf
from engine.backends.torch.kernel_shape import kernel_shape
from engine.backends.torch.kv_kind import choose_kind
from engine.backends.torch.kv_memory import TorchKVMemory
from engine.backends.torch.memory_need import choose_placement
from engine.backends.torch.namespace import kv_namespace
from engine.backends.torch.opened_model import OpenedModel, Progress
from engine.backends.torch.runner import TorchRunner
from engine.backends.torch.safetensors_model import open_safetensors
from engine.config import EngineConfig
from engine.cores import usable_cores
from engine.errors import ModelUnsupported
from kernels.language import KERNEL_ERRORS
from kernels.self_test import self_test
from kernels.specs import ModelShape, warm_up

logger = logging.getLogger(__name__)

_PROGRESS_SECONDS = 2.0
NO_MEDIA = "The torch engine reads neither pictures nor sounds: use --backend llama for them."


class TorchBackend:
    """A model in GGUF or safetensors. Closed by the engine thread."""

    kind = "torch"
    media = None

    def __init__(
        self,
        config: EngineConfig,
        *,
        beside_bytes: int = 0,
        progress: Progress | None = None,
    ) -> None:
        """`beside_bytes`: memory that something else will take. Raises a ModelError."""
        if config.acting_adapters:
            raise ModelUnsupported(
                "The torch engine uses no adapters: leave them out, or use --backend llama."
            )
        opened = _open(config)
        device = choose_device()
        num_threads = config.threads or usable_cores()
        facts = opened.config.facts
        num_cells = config.num_cells(facts.trained_context)
        self.max_request_tokens = min(num_cells, facts.trained_context)
        kind = choose_kind(config.kv_type, device.dtype)
        placement = choose_placement(
            opened,
            device,
            kind.num_bytes(facts, num_cells, config.max_sequences),
            num_cells,
            beside_bytes,
        )
        failed: list[str] = []
        if device.device.type == "cuda":
            shape = kernel_shape(opened, placement, kind, self.max_request_tokens)
            failed = try_kernels(shape, device)
        loader = opened.loader(placement, progress or _logged())
        decoder = loader.load(self.max_request_tokens)
        self.tokenizer = opened.tokenizer
        self.kv_memory = TorchKVMemory(
            num_layers=facts.num_layers,
            num_kv_heads=facts.num_kv_heads,
            head_dim=facts.head_dim,
            num_cells=num_cells,
            num_sequences=config.max_sequences,
            dtype=kind.dtype,
            device=device.device,
            namespace=kv_namespace(opened.config, placement, device, kind, self.max_request_tokens),
        )
        self.model_runner: TorchRunner = TorchRunner(
            decoder,
            self.kv_memory,
            device.device,
            num_tokens=opened.tokenizer.num_tokens,
            num_threads=num_threads,
            # Only on the processor are they what computes.
            adapt_threads=config.threads is None and device.device.type == "cpu",
        )
        self.info = replace(
            opened.info,
            kv_bytes_per_token=kind.bytes_per_token(facts),
            media_refusal=NO_MEDIA if config.mmproj_path is not None else "",
            notice=" ".join([*_notices(opened, device, is_packed=placement.keeps_packed), *failed]),
        )

    def close(self) -> None:
        self.model_runner.close()
        self.kv_memory.close()


def _open(config: EngineConfig) -> OpenedModel:
    if config.model_path.is_dir():
        return open_safetensors(config.model_path)
    return open_gguf(config.model_path)


def _notices(opened: OpenedModel, device: Device, *, is_packed: bool) -> list[str]:
    # What became numbers anyway takes no more than what was packed.
    of_weights = opened.source.notice if is_packed else ""
    return [each for each in (device.notice, of_weights) if each]


def try_kernels(shape: ModelShape, device: Device) -> list[str]:
    """A sentence for each that is wrong on this card; the others are built now.

    Raises ModelUnsupported where they cannot be.
    """
    failed = list(self_test(shape, device.device).values())
    said = monotonic()
    try:
        for share in warm_up(shape, device.device):
            if monotonic() - said >= _PROGRESS_SECONDS:
                said = monotonic()
                logger.info("%.0f%% of the kernels are built", 100 * share)
    except KERNEL_ERRORS as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelUnsupported(
            f"The kernels of {shape.name} cannot be built for {device.name} ({words[-1][:200]}):"
            " use --backend llama."
        ) from error
    return failed


def _logged() -> Progress:
    """Says from time to time how much is read."""
    said = monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal said
        if monotonic() - said >= _PROGRESS_SECONDS:
            said = monotonic()
            logger.info("%.1f of %.1f GB of the weights are read", done / 1e9, total / 1e9)

    return progress
