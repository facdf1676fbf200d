"""An embedding model, tried before it is chosen: whether it tells texts apart, what it costs."""

import asyncio
from dataclasses import dataclass
from time import monotonic

from app.documents.embedding.embedder import Embedder
from app.documents.embedding.process import EmbeddingProcess
from engine.errors import ModelUnsupported

SENTENCES = {
    "en": (
        "The doctor looked after the sick child all night.",
        "A physician cared for an ill boy until morning.",
        "The company sold fewer cars in the last quarter.",
    ),
    "de": (
        "Der Arzt hat die ganze Nacht nach dem kranken Kind gesehen.",
        "Ein Mediziner hat einen kranken Jungen bis zum Morgen gepflegt.",
        "Die Firma hat im letzten Quartal weniger Autos verkauft.",
    ),
    "zh": (
        "\u533b\u751f\u6574\u591c\u7167\u987e\u751f\u75c5\u7684\u5b69\u5b50\u3002",
        "\u5927\u592b\u770b\u62a4\u60a3\u75c5\u7684\u7537\u5b69\u76f4\u5230\u5929\u4eae\u3002",
        "\u516c\u53f8\u4e0a\u4e2a\u5b63\u5ea6\u5356\u51fa\u7684\u6c7d\u8f66\u51cf\u5c11\u4e86\u3002",
    ),
}
"""Two that say the same in other words, and one that does not."""
TIMES = 3
PASSAGE_SENTENCES = 10
"""As long as most passages are."""


@dataclass(frozen=True, slots=True)
class Trial:
    """`num_passages` have to be computed, which takes about so many seconds."""

    embedder: Embedder
    num_passages: int
    seconds: float


async def check_meaning(process: EmbeddingProcess) -> float:
    """How many seconds a passage takes. Raises ModelError, among others for a model that does not
    bring texts together that say the same."""
    embedder = await process.embedder()
    known = next((each for each in SENTENCES if embedder.knows((each,))), "en")
    one, same, other = [
        await process.embed(sentence, is_query=False) for sentence in SENTENCES[known]
    ]
    if not float(one @ same) > float(one @ other):
        raise ModelUnsupported(
            f"{process.path.name} finds two sentences that say the same ({float(one @ same):.2f})"
            f" no closer than two that do not ({float(one @ other):.2f}): choose another embedding"
            " model."
        )
    passage = " ".join(SENTENCES[known][0] for _ in range(PASSAGE_SENTENCES))
    since = monotonic()
    for _ in range(TIMES):
        await process.embed(passage, is_query=False)
        await asyncio.sleep(0)
    return (monotonic() - since) / TIMES
