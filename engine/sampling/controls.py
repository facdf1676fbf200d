"""Every sampling control that is a number, with its range, and the orders in which filters run."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """What controls are for; also their heading where they are listed."""

    CHANCE = "chance"
    FILTERS = "which tokens stay in the draw"
    DRAWS = "other ways to draw"
    REPETITION = "against repetition"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Control:
    """A field of `SamplingParams`: from `low` to `high`, both possible."""

    name: str
    low: float
    high: float
    summary: str
    group: Group
    is_whole: bool = False


FILTERS, DRAWS, REPETITION = Group.FILTERS, Group.DRAWS, Group.REPETITION

CONTROLS: tuple[Control, ...] = (
    Control("temperature", 0, 5, "how even the chances are; 0 takes the likeliest", Group.CHANCE),
    Control(
        "dynatemp_range",
        0,
        5,
        "lower the temperature by up to this where the model is sure, raise it where not; 0 is off",
        Group.CHANCE,
    ),
    Control(
        "dynatemp_exponent", 0, 10, "how late the dynamic temperature begins to rise", Group.CHANCE
    ),
    Control("top_k", 0, 1_000_000, "keep the k likeliest; 0 is off", FILTERS, True),
    Control("top_p", 0, 1, "keep the likeliest that add up to this; 1 is off", FILTERS),
    Control("min_p", 0, 1, "drop what is below this share of the likeliest; 0 is off", FILTERS),
    Control(
        "typical_p",
        0,
        1,
        "keep those as surprising as the average, up to this sum; 1 is off",
        FILTERS,
    ),
    Control("tfs_z", 0, 1, "cut the tail where the curve goes flat; 1 is off", FILTERS),
    Control("top_a", 0, 1, "drop what is below this times the best's square; 0 is off", FILTERS),
    Control("epsilon_cutoff", 0, 1, "drop what is less probable than this; 0 is off", FILTERS),
    Control(
        "eta_cutoff",
        0,
        1,
        "the same, with less dropped where the model is unsure; 0 is off",
        FILTERS,
    ),
    Control(
        "top_n_sigma",
        0,
        100,
        "keep logits within so many deviations of the largest; 0 is off",
        FILTERS,
    ),
    Control(
        "xtc_probability", 0, 1, "how often the likeliest choices are left out; 0 is off", FILTERS
    ),
    Control(
        "xtc_threshold", 0, 0.5, "all choices above this are, but for the least likely one", FILTERS
    ),
    Control("mirostat", 0, 2, "keep a steady surprise, by version 1 or 2; 0 is off", DRAWS, True),
    Control("mirostat_tau", 0, 100, "the surprise aimed at, in bits", DRAWS),
    Control("mirostat_eta", 0, 1, "how quickly the aim is corrected", DRAWS),
    Control("adaptive_target", 0, 1, "prefer tokens of about this probability; 0 is off", DRAWS),
    Control("adaptive_decay", 0, 0.99, "how long what was drawn is remembered", DRAWS),
    Control("repetition_penalty", 0.1, 10, "make what was said less likely; 1 is off", REPETITION),
    Control("presence_penalty", -2, 2, "take this off what the answer has; 0 is off", REPETITION),
    Control("frequency_penalty", -2, 2, "the same for each time it was said; 0 is off", REPETITION),
    Control(
        "penalty_window", 0, 1_000_000, "how far back repetition_penalty looks", REPETITION, True
    ),
    Control(
        "no_repeat_ngram_size",
        0,
        100,
        "no run of so many tokens comes twice; 0 is off",
        REPETITION,
        True,
    ),
    Control(
        "dry_multiplier",
        0,
        100,
        "make going on with a repetition less likely; 0 is off",
        REPETITION,
    ),
    Control("dry_base", 1, 10, "how the DRY penalty grows with the length", REPETITION),
    Control(
        "dry_allowed_length", 1, 1000, "so many tokens may repeat without it", REPETITION, True
    ),
    Control("dry_window", 0, 1_000_000, "how far back DRY looks", REPETITION, True),
    Control("min_tokens", 0, 1_000_000, "no end before so many", Group.LENGTH, True),
    Control("max_tokens", 1, 1_000_000, "the most that an answer has", Group.LENGTH, True),
)

BREAKERS = "\n", ":", '"', "*"
"""Where DRY sees no repetition across: the author's own, which llama.cpp has, too."""

LLAMA_CPP_ORDER = (
    "top_n_sigma",
    "top_k",
    "tfs_z",
    "typical_p",
    "top_p",
    "min_p",
    "top_a",
    "epsilon_cutoff",
    "eta_cutoff",
    "xtc",
    "temperature",
)
TRANSFORMERS_ORDER = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "top_n_sigma",
    "tfs_z",
    "top_a",
    "xtc",
)
VLLM_ORDER = ("temperature", "min_p", *(n for n in TRANSFORMERS_ORDER[1:] if n != "min_p"))

ORDERS: Mapping[str, tuple[str, ...]] = {
    "llama.cpp": LLAMA_CPP_ORDER,
    "transformers": TRANSFORMERS_ORDER,
    "vllm": VLLM_ORDER,
}
"""Whole orders by the name of the project that has it. What a project lacks has a place of ours in
its order: behind its filters, or where llama.cpp once had it."""
