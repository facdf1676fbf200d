"""`inglenook eval NAME`: quality measured on data that is given, each a file of this folder."""

from collections.abc import Mapping

EVALS: Mapping[str, str] = {
    "quant": "what fewer bits cost: perplexity and divergence, size and speed; weights and KV",
    "docs": "answers from documents: what is found, refused, and cited rightly",
    "guided": "JSON Schemas: what is refused, wrongly accepted, wrongly rejected, and how fast",
}
