"""How likely a real model found its tokens does not depend on what was held of the prompt."""

import pytest

from engine.logprobs import TokenChoice
from engine.request import RequestOptions, RequestOutput
from tests.engine.backends.llama_cpp.model_run import NEAR_TIE, ModelRun

TEXT = "The keeper climbed two hundred and eleven steps. " * 6


def likelihoods(run: ModelRun, prompt: list[int], *, is_reproducible: bool) -> list[TokenChoice]:
    options = RequestOptions(is_reproducible=is_reproducible, num_logprobs=3)
    number = run.submit(prompt, options, max_tokens=6)
    choices: list[TokenChoice] = []
    while run.engine.has_work:
        run.engine.accept_steps()
        outputs = run.engine.step()
        run.take(outputs)
        for output in outputs:
            assert isinstance(output, RequestOutput)
            choices += output.choices
    assert [choice.chosen.token_id for choice in choices] == run.tokens[number]
    return choices


@pytest.mark.parametrize("is_reproducible", [True, False])
def test_likelihoods_are_the_same_whatever_was_held(run: ModelRun, is_reproducible: bool) -> None:
    """vllm#42019, Model-Optimizer#1577: wrong beside a prefix cache."""
    prompt = run.encode(TEXT)
    cold = likelihoods(run, prompt, is_reproducible=is_reproducible)
    warm = likelihoods(run, prompt, is_reproducible=is_reproducible)
    if is_reproducible:
        assert warm == cold
        return
    # Another shape of the same computation rounds in another way.
    for one, other in zip(cold, warm, strict=True):
        if one.chosen.token_id != other.chosen.token_id:
            break
        assert one.chosen.logprob == pytest.approx(other.chosen.logprob, abs=NEAR_TIE)
