"""From the tensors of a file to a decoder: each is read, put into its place and let go."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from engine.backends.torch.architecture import Architecture
from engine.backends.torch.decoder import Decoder
from engine.backends.torch.decoder_config import DecoderConfig, LayerConfig
from engine.backends.torch.gguf_facts import ROPE_TENSORS
from engine.backends.torch.layers import Attention, DecoderLayer, GatedLayer, Norm, Projection
from engine.backends.torch.placement import Placement
from engine.backends.torch.weight_source import Matrix, WeightSource
from engine.errors import ModelDamaged, ModelUnsupported
from kernels.quant.planes import QuantizedMatrix, half_split_order, join_rows
from kernels.rotary import rotary_table

# Of old files of transformers; they follow from the configuration.
_COMPUTED = (".rotary_emb.inv_freq", ".masked_bias", ".attn.bias")


class DecoderLoader:
    """Used once. `parts` says where a weight is found, by `Architecture`."""

    def __init__(
        self,
        source: WeightSource,
        config: DecoderConfig,
        placement: Placement,
        *,
        model: str,
        parts: Mapping[str, str],
        interleaves: bool = False,
        norms_less_one: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """`model` is its name for the user; `progress` hears how many bytes of how many are
        read."""
        self._source = source
        self._config = config
        self._facts = config.facts
        self._placement = placement
        self._model = model
        self._parts = parts
        self._interleaves = interleaves
        self._norms_less_one = norms_less_one
        self._progress = progress
        self._num_read = 0
        self._used: set[str] = set()

    @classmethod
    def for_gguf(
        cls,
        source: WeightSource,
        config: DecoderConfig,
        placement: Placement,
        architecture: Architecture,
        model: str,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "DecoderLoader":
        return cls(
            source,
            config,
            placement,
            model=model,
            parts=architecture.gguf_parts,
            interleaves=architecture.interleaves_in_gguf,
            progress=progress,
        )

    @classmethod
    def for_safetensors(
        cls,
        source: WeightSource,
        config: DecoderConfig,
        placement: Placement,
        architecture: Architecture,
        model: str,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "DecoderLoader":
        return cls(
            source,
            config,
            placement,
            model=model,
            parts=architecture.safetensors_parts,
            norms_less_one=architecture.norms_less_one,
            progress=progress,
        )

    def load(self, max_positions: int) -> Decoder:
        """Raises the ModelError that says what is missing or not known."""
        config = self._config
        tables = [
            rotary_table(
                rope.dim, rope.base, max_positions, rope.scaling, device=self._placement.device
            )
            for rope in config.ropes
        ]
        words = self._placement.matrix(self._read("embedding"))
        layers = [
            self._layer(number, layer, tables[layer.rope])
            for number, layer in enumerate(config.layers)
        ]
        last_norm = self._norm("last_norm")
        has_head = self._name("head") in self._source.names
        head = self._placement.matrix(self._read("head")) if has_head else words
        self._check_all_used()
        return Decoder(
            words=words,
            layers=layers,
            last_norm=last_norm,
            head=head,
            dtype=self._placement.dtype,
            embedding_scale=config.embedding_scale,
            logit_divisor=config.logit_divisor,
            logit_softcap=config.logit_softcap,
        )

    def _layer(self, number: int, layer: LayerConfig, table: Tensor) -> DecoderLayer:
        config, facts = self._config, self._facts
        return DecoderLayer(
            attention_norm=self._norm("attention_norm", number),
            attention=Attention(
                query_key_value=self._projection(
                    number,
                    ("query_key_value",),
                    ("query", facts.num_heads),
                    ("key", facts.num_kv_heads),
                    ("value",),
                ),
                output=self._projection(number, ("output",)),
                query_norm=self._optional_norm("query_norm", number),
                key_norm=self._optional_norm("key_norm", number),
                num_heads=facts.num_heads,
                num_kv_heads=facts.num_kv_heads,
                head_dim=facts.head_dim,
                table=table,
                scale=config.query_scale,
                window=layer.window,
                softcap=config.attention_softcap,
            ),
            post_attention_norm=self._optional_norm("post_attention_norm", number),
            mlp_norm=self._norm("mlp_norm", number),
            mlp=GatedLayer(
                gate_up=self._projection(number, ("gate_up",), ("gate",), ("up",)),
                down=self._projection(number, ("down",)),
                activation=config.activation,
            ),
            post_mlp_norm=self._optional_norm("post_mlp_norm", number),
            residual_scale=config.residual_scale,
        )

    def _projection(self, number: int, *wanted: tuple[str] | tuple[str, int]) -> Projection:
        """Those of the parts that this architecture has, side by side. A number of heads with one
        means that its rows turn, so their order matters."""
        matrices: list[Matrix] = []
        biases: list[Tensor | None] = []
        for part, *heads in wanted:
            if part not in self._parts:
                continue
            matrix = self._read(part, number)
            bias = self._bias(part, number)
            if heads and self._interleaves:
                matrix = _in_halves(matrix, heads[0])
                bias = None if bias is None else _in_halves(bias, heads[0])
            matrices.append(self._placement.matrix(matrix))
            biases.append(None if bias is None else self._placement.bias(bias))
        return _joined(matrices, biases)

    def _norm(self, part: str, number: int = 0) -> Norm:
        weight = self._read(part, number)
        assert isinstance(weight, Tensor), "norms are not packed"
        exact = self._placement.norm(weight)
        return Norm(exact + 1 if self._norms_less_one else exact, self._facts.norm_eps)

    def _optional_norm(self, part: str, number: int) -> Norm | None:
        return self._norm(part, number) if part in self._parts else None

    def _bias(self, part: str, number: int) -> Tensor | None:
        name = self._parts[part].format(number) + ".bias"
        if name not in self._source.names:
            return None
        bias = self._read_name(name)
        assert isinstance(bias, Tensor), "biases are not packed"
        return bias

    def _name(self, part: str, number: int = 0) -> str:
        return self._parts[part].format(number) + ".weight"

    def _read(self, part: str, number: int = 0) -> Matrix:
        name = self._name(part, number)
        if name not in self._source.names:
            raise ModelDamaged(
                f"{self._model} lacks the weights {name}: bring another file of this model."
            )
        return self._read_name(name)

    def _read_name(self, name: str) -> Matrix:
        self._used.add(name)
        weight = self._source.read(name)
        self._num_read += self._source.size_of(name)
        self._progress(self._num_read, self._source.num_bytes)
        return weight

    def _check_all_used(self) -> None:
        """What was left out would change the answers."""
        known = self._used | set(ROPE_TENSORS)
        others = sorted(
            name
            for name in self._source.names
            if name not in known and not name.endswith(_COMPUTED)
        )
        if others:
            raise ModelUnsupported(
                f"{self._model} has weights that the torch engine does not know, such as"
                f" {others[0]} ({len(others)} in all): use --backend llama, or a GGUF file of it."
            )


def _in_halves(weight: Matrix, num_heads: int) -> Matrix:
    """With the rows of each head in the order in which its two halves turn together."""
    if isinstance(weight, QuantizedMatrix):
        return weight.permute_rows(half_split_order(weight.num_rows, num_heads))
    return weight.index_select(0, half_split_order(len(weight), num_heads))


def _joined(matrices: list[Matrix], biases: list[Tensor | None]) -> Projection:
    """One matrix instead of neighbours that are packed alike."""
    groups: list[tuple[list[Matrix], list[Tensor | None]]] = []
    for matrix, bias in zip(matrices, biases, strict=True):
        if (
            groups
            and _are_alike(groups[-1][0][0], matrix)
            and (groups[-1][1][0] is None) == (bias is None)
        ):
            groups[-1][0].append(matrix)
            groups[-1][1].append(bias)
        else:
            groups.append(([matrix], [bias]))
    return Projection(
        tuple(_join(group) for group, _ in groups),
        tuple(
            None if each[0] is None else torch.cat([bias for bias in each if bias is not None])
            for _, each in groups
        ),
    )


def _are_alike(one: Matrix, other: Matrix) -> bool:
    if isinstance(one, QuantizedMatrix) or isinstance(other, QuantizedMatrix):
        return (
            isinstance(one, QuantizedMatrix)
            and isinstance(other, QuantizedMatrix)
            and one.type_name == other.type_name
        )
    return True


def _join(matrices: list[Matrix]) -> Matrix:
    if len(matrices) == 1:
        return matrices[0]
    packed = [each for each in matrices if isinstance(each, QuantizedMatrix)]
    if packed:
        return join_rows(packed)
    return torch.cat([each for each in matrices if isinstance(each, Tensor)])
