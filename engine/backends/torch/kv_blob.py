"""What the torch backend writes of the KV of a range of tokens.

    mark, first token, end, bytes of a token    8 bytes each
    of each token, of each layer: K, V          [num_kv_heads, head_dim] in the pool's own numbers
    and where they are int8, K's and V's scales [num_kv_heads] float32

Token by token, so that the beginning of a blob is a blob of the first tokens.
"""

from struct import Struct

import numpy as np
from numpy.typing import NDArray

from engine.kv.segment import Blob

_HEAD = Struct("<8sQQQ")
# llama.cpp's states begin with another word.
_MARK = b"torchKV1"


def write_blob(start: int, end: int, rows: NDArray[np.uint8]) -> Blob:
    """`rows` [end - start, bytes of a token]."""
    blob = np.empty(_HEAD.size + rows.size, np.uint8)
    _HEAD.pack_into(blob.data, 0, _MARK, start, end, rows.shape[1])
    blob[_HEAD.size :] = rows.reshape(-1)
    return blob


def read_blob(blob: Blob, start: int, end: int, token_bytes: int) -> NDArray[np.uint8] | None:
    """The rows [end - start, token_bytes], a view. None: it is no blob of exactly these tokens."""
    if blob.dtype != np.uint8 or blob.ndim != 1 or len(blob) < _HEAD.size or start >= end:
        return None
    if _HEAD.unpack_from(blob[: _HEAD.size].tobytes()) != (_MARK, start, end, token_bytes):
        return None
    if len(blob) != _HEAD.size + (end - start) * token_bytes:
        return None
    return blob[_HEAD.size :].reshape(end - start, token_bytes)
