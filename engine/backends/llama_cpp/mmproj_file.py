"""What a model's multimodal part is, told from the header of its file (mmproj)."""

from dataclasses import dataclass
from pathlib import Path

from engine.backends.llama_cpp.gguf_header import GGUFHeader
from engine.backends.llama_cpp.whole_file import whole_header
from engine.errors import ModelError, ModelUnsupported

ARCHITECTURE = "clip"
# Whisper's encoders, which nearly all models for sounds have, see 30 seconds at once.
AUDIO_PLACES = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class MmprojShape:
    """`width`: how many numbers it gives for each place, which must be the text model's."""

    num_bytes: int
    work_bytes: int
    width: int
    has_vision: bool
    has_audio: bool

    @property
    def memory_bytes(self) -> int:
        """Its weights, and about what looking at the largest picture takes beside them."""
        return self.num_bytes + self.work_bytes


def read_mmproj(path: Path) -> MmprojShape:
    """Raises the ModelError that says why it cannot be used."""
    header = whole_header(path)
    if header.architecture != ARCHITECTURE:
        raise ModelUnsupported(
            f"{path.name} is no multimodal part of a model ({header.architecture}): name the"
            " mmproj file that was made with the model."
        )
    kinds = [kind for kind in ("vision", "audio") if header.values.get(f"clip.has_{kind}_encoder")]
    widths = [_number(header, kind, "projection_dim") for kind in kinds]
    return MmprojShape(
        num_bytes=path.stat().st_size,
        work_bytes=max((_work_bytes(header, kind) for kind in kinds), default=0),
        width=widths[0] if widths else 0,
        has_vision="vision" in kinds,
        has_audio="audio" in kinds,
    )


def mmproj_bytes(path: Path | None) -> int:
    """What it takes in memory; nothing where there is none, or it cannot be used."""
    if path is None:
        return 0
    try:
        return read_mmproj(path).memory_bytes
    except ModelError:
        return 0


def _work_bytes(header: GGUFHeader, kind: str) -> int:
    """Two numbers of four bytes for each of the widest layer, and six for each of the encoder's
    width, at every place."""
    if kind == "audio":
        places = AUDIO_PLACES
    else:
        patch = _number(header, kind, "patch_size")
        places = (_number(header, kind, "image_size") // max(1, patch)) ** 2
    widest = _number(header, kind, "feed_forward_length")
    return 4 * places * (2 * widest + 6 * _number(header, kind, "embedding_length"))


def _number(header: GGUFHeader, kind: str, name: str) -> int:
    value = header.values.get(f"{ARCHITECTURE}.{kind}.{name}")
    return value if isinstance(value, int) else 0
