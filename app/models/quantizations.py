"""What the names of quantisations mean, in one line each."""

import re
from collections.abc import Mapping
from typing import Final

EXPLAINED: Final[Mapping[str, str]] = {
    "F32": "as it was trained, four bytes a weight: for comparing only",
    "BF16": "as it was trained, two bytes a weight: exact, large and slow on a processor",
    "F16": "two bytes a weight: exact for all purposes, large and slow on a processor",
    "Q8_0": "one byte a weight: no loss that anybody could tell",
    "Q6_K": "six bits a weight: next to no loss, three quarters of Q8_0",
    "Q5_K_M": "five bits a weight: a very small loss; take it where there is room",
    "Q5_K_S": "five bits a weight, a little smaller and coarser than Q5_K_M",
    "Q5_0": "five bits a weight in the old form: Q5_K_M is better",
    "Q4_K_M": "four bits a weight: a small loss, the usual choice",
    "Q4_K_S": "four bits a weight, a little smaller and coarser than Q4_K_M",
    "Q4_0": "four bits a weight in the old form: coarser, and fast on many processors",
    "Q4_1": "four bits a weight in the old form, a little finer and larger than Q4_0",
    "IQ4_XS": "a little over four bits a weight: smaller than Q4_K_M, slower on a processor",
    "IQ4_NL": "four bits a weight with uneven steps: close to Q4_K_S",
    "Q3_K_L": "three bits a weight: a loss that shows; better a smaller model in Q4_K_M",
    "Q3_K_M": "three bits a weight: a loss that shows; better a smaller model in Q4_K_M",
    "Q3_K_S": "three bits a weight, coarser than Q3_K_M",
    "IQ3_M": "three bits a weight with uneven steps: smaller and slower than Q3_K_M",
    "Q2_K": "two to three bits a weight: a large loss, for trying a model that is too large",
    "MXFP4": "four bits a weight, as some models were trained: no loss for those",
}

_IN_NAME = re.compile(
    r"(?:^|[-._])((?:UD-)?I?Q\d(?:_[A-Z0-9]+)*|MXFP4(?:_MOE)?|BF16|F16|F32|FP16|FP32)(?=[-._]|$)",
    re.IGNORECASE,
)

# llama.cpp's numbers of what a file is mostly made of: `general.file_type`.
_OF_FILE_TYPE: Final[Mapping[int, str]] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    23: "IQ3_XXS",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    30: "IQ4_XS",
    32: "BF16",
    38: "MXFP4",
}


def explained(name: str) -> str:
    """Empty for a name that is not among them."""
    return EXPLAINED.get(name, "")


def named(file_type: int) -> str:
    """Empty for a number that nobody uses."""
    return _OF_FILE_TYPE.get(file_type, "")


def quantization_of(name: str) -> str:
    """What a file's name says of its quantisation, in capitals; empty when it says nothing."""
    stem = name.rpartition("/")[2].removesuffix(".gguf")
    found = _IN_NAME.findall(stem)
    name = str(found[-1]).upper() if found else ""
    return {"FP16": "F16", "FP32": "F32"}.get(name, name)
