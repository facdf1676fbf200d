"""Stop words are of use only as the folding leaves them."""

import pytest

from app.documents.stop_words import BY_LANGUAGE
from app.documents.words import PIECE, fold


@pytest.mark.parametrize("language", sorted(BY_LANGUAGE))
def test_every_stop_word_is_one_word_and_folded(language: str) -> None:
    assert [
        word
        for word in sorted(BY_LANGUAGE[language])
        if fold(word) != word or PIECE.fullmatch(word) is None
    ] == []
