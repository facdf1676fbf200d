"""Every step that transformers has, against its own processors, where that library is installed.

It is not among what the tests need: with torch it is larger than everything else together, and
`reference.py` has the same definitions.
"""

import numpy as np
import pytest

from engine.sampling import cutoffs, samplers
from engine.sampling.penalties import Penalties
from engine.sampling.repeats import completing_ngrams
from engine.sampling_params import SamplingParams
from tests.engine.sampling.rows import distinct_vectors, of

torch = pytest.importorskip("torch")
processors = pytest.importorskip("transformers.generation.logits_process")

FILTERS = {
    "top k": (samplers.top_k, processors.TopKLogitsWarper),
    "top p": (samplers.top_p, processors.TopPLogitsWarper),
    "min p": (samplers.min_p, processors.MinPLogitsWarper),
    "typical": (cutoffs.typical_p, processors.TypicalLogitsWarper),
    "epsilon": (cutoffs.epsilon_cutoff, processors.EpsilonLogitsWarper),
    "eta": (cutoffs.eta_cutoff, processors.EtaLogitsWarper),
}
NOTHING = torch.zeros((1, 1), dtype=torch.long)


def kept_by(processor, logits, tokens=NOTHING):
    row = processor(tokens, torch.tensor(logits)[None])[0].numpy()
    return set(np.flatnonzero(row > -np.inf).tolist())


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_keeps_what_transformers_keeps(name):
    ours, theirs = FILTERS[name]
    generator = np.random.default_rng(1)
    for logits in distinct_vectors(300):
        amount = float(generator.uniform(0.01, 0.99)) ** (3 if name in ("epsilon", "eta") else 1)
        if name == "top k":
            amount = int(generator.integers(1, len(logits) + 5))
        assert set(ours(of(logits), amount).tolist()) == kept_by(theirs(amount), logits)


def test_the_repetition_penalty_is_that_of_transformers():
    params = SamplingParams(repetition_penalty=1.3, penalty_window=1000)
    theirs = processors.RepetitionPenaltyLogitsProcessor(1.3)
    generator = np.random.default_rng(2)
    for logits in distinct_vectors(100):
        tokens = generator.integers(0, len(logits), 40).tolist()
        row = logits.copy()
        Penalties(params, 0, len(tokens)).apply(row, tokens)
        expected = theirs(torch.tensor([tokens]), torch.tensor(logits)[None])[0].numpy()
        assert row == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_repeat_ngram_bans_what_transformers_bans(size):
    theirs = processors.NoRepeatNGramLogitsProcessor(size)
    generator = np.random.default_rng(3)
    for _ in range(100):
        tokens = generator.integers(0, 4, int(generator.integers(1, 40))).tolist()
        left = kept_by(theirs, np.zeros(4, np.float32), torch.tensor([tokens]))
        banned = completing_ngrams(np.array(tokens, np.int32), size).tolist()
        assert left == set(range(4)) - set(banned)
