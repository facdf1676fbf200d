"""What the weights of a GGUF file are, tensor by tensor, and what a token does with them."""

from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path

from engine.backends.llama_cpp.gguf_file import REMEDY, check_file
from engine.backends.llama_cpp.gguf_header import BrokenHeader, Tensor, read_header
from engine.errors import ModelDamaged

_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"


@dataclass(frozen=True, slots=True)
class Weights:
    """All tensors of a file. Of the experts of a mixture, a token meets `experts_used` of `experts`
    (1 of 1 where there are none)."""

    tensors: tuple[Tensor, ...]
    experts_used: int = 1
    experts: int = 1

    @property
    def main_type(self) -> str:
        """The type that most bytes of the matrices have."""
        counted: Counter[str] = Counter()
        for each in self._matrices():
            counted[each.type_name] += each.num_bytes or 0
        return counted.most_common(1)[0][0] if counted else "F32"

    @property
    def layer_multiply_adds(self) -> float:
        """For each token that is read: a multiplication and an addition for each weight."""
        return sum(each.num_numbers * self._share(each) for each in self._layers())

    @property
    def head_multiply_adds(self) -> int:
        """For each token after which another one is written, besides."""
        head = self._head()
        return 0 if head is None else head.num_numbers

    @property
    def bytes_of_a_step(self) -> float:
        """What a step of one token reads of the weights; of the experts only those it meets."""
        head = self._head()
        layers = sum((each.num_bytes or 0) * self._share(each) for each in self._layers())
        return layers + (0 if head is None else head.num_bytes or 0)

    def _matrices(self) -> list[Tensor]:
        return [each for each in self.tensors if len(each.shape) >= 2 and prod(each.shape[1:]) > 1]

    def _layers(self) -> list[Tensor]:
        return [each for each in self._matrices() if each.name not in (_EMBEDDING, _HEAD)]

    def _head(self) -> Tensor | None:
        """Where a file has none of its own, the embedding is the head, too."""
        named = {each.name: each for each in self.tensors}
        return named.get(_HEAD) or named.get(_EMBEDDING)

    def _share(self, tensor: Tensor) -> float:
        return self.experts_used / self.experts if "_exps" in tensor.name else 1.0


def read_weights(path: Path) -> Weights:
    """Raises the ModelError that says why the file cannot be read."""
    check_file(path)
    try:
        header = read_header(path)
    except BrokenHeader as error:
        raise ModelDamaged(f"{path.name} is cut off or damaged ({error}): {REMEDY}") from error
    experts = header.own("expert_count")
    if not experts:
        return Weights(header.tensors)
    return Weights(header.tensors, header.own("expert_used_count") or experts, experts)
