"""Models of usual sizes, bounded by the two rates."""

from app.machine.predictions import USUAL_MODELS, as_lines, predict
from app.machine.rates import Rates


def test_memory_bounds_writing_and_arithmetic_reading() -> None:
    first = predict(Rates(8e9, 1e11, 2), 10**12)[0]
    assert first.tokens_per_second == 20 and first.read_tokens_per_second == 200


def test_what_does_not_fit_is_said() -> None:
    predictions = predict(Rates(8e9, 1e11, 2), 3_000_000_000)
    assert [each.fits for each in predictions] == [True, True, True, False, False]
    lines = as_lines(predictions)
    assert len(lines) == len(USUAL_MODELS) and lines[-1].endswith("into the free memory")
