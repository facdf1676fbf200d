"""A tokenizer of transformers behind the house's face."""

from pathlib import Path
from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers

from engine.backends.torch.pretrained_tokenizer import PretrainedTokenizer, end_ids
from engine.errors import ModelUnsupported
from engine.guided.vocabulary import GuidedVocabulary
from tests.engine.backends.torch.tiny_models import WORDS, tiny_tokenizer

TEXTS = ["abc dad", "Grüße, Žofia 👋🏽\n\n", "  two", "</s> is text", "", "\ud800 alone", "日本"]


@pytest.fixture
def tokenizer() -> PretrainedTokenizer:
    return PretrainedTokenizer(tiny_tokenizer(WORDS), frozenset({2}), max_tokens=WORDS)


def sentencepiece() -> Any:
    """A vocabulary with a sign for spaces, and bytes for what it has no word for."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b"]
    made = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, [], byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


@pytest.mark.parametrize("text", TEXTS)
def test_the_bytes_of_tokens_spell_the_text(tokenizer: PretrainedTokenizer, text: str) -> None:
    token_ids = tokenizer.encode(text)
    spelled = b"".join(map(tokenizer.token_bytes, token_ids))
    assert spelled == text.encode("utf-8", "replace")
    assert not {0, 1, 2} & set(token_ids)


def test_a_sentencepiece_vocabulary_is_spelled_too() -> None:
    tokenizer = PretrainedTokenizer(sentencepiece(), frozenset({2}), max_tokens=1000)
    token_ids = tokenizer.encode("ab ä b")
    assert b"".join(map(tokenizer.token_bytes, token_ids)) == " ab ä b".encode()
    assert tokenizer.token_bytes(3 + 0x0A) == b"\n"


def test_control_tokens_are_known_by_their_text_and_add_nothing(
    tokenizer: PretrainedTokenizer,
) -> None:
    assert {text: each.token_id for text, each in tokenizer.control_tokens.items()} == {
        "<pad>": 0,
        "<s>": 1,
        "</s>": 2,
    }
    assert [tokenizer.token_bytes(each) for each in range(3)] == [b""] * 3
    assert [tokenizer.is_end(each) for each in range(4)] == [False, False, True, False]
    assert tokenizer.num_end_tokens == 1


def test_ids_beyond_the_vocabulary_are_an_error(tokenizer: PretrainedTokenizer) -> None:
    for wrong in (-1, tokenizer.num_tokens):
        with pytest.raises(IndexError):
            tokenizer.token_bytes(wrong)


def test_a_model_with_fewer_rows_has_fewer_tokens() -> None:
    tokenizer = PretrainedTokenizer(tiny_tokenizer(WORDS), frozenset({2, 299}), max_tokens=280)
    assert tokenizer.num_tokens == 280
    assert tokenizer.num_end_tokens == 1


def test_who_puts_a_token_before_every_text_is_found_out() -> None:
    from tokenizers import processors

    def begins(made: Tokenizer) -> None:
        made.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )

    plain = PretrainedTokenizer(tiny_tokenizer(WORDS), frozenset({2}), max_tokens=WORDS)
    begun = PretrainedTokenizer(tiny_tokenizer(WORDS, begins), frozenset({2}), max_tokens=WORDS)
    assert plain.bos_id is None
    assert begun.bos_id == 1
    assert begun.encode("abc") == plain.encode("abc")


def test_all_that_ends_an_answer_is_collected(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    library = tiny_tokenizer(WORDS)
    library.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    config = transformers.LlamaConfig(eos_token_id=9)
    turn = library.convert_tokens_to_ids("<|im_end|>")
    assert end_ids(tmp_path, config, library) == {2, 7, 8, 9, turn}
    (tmp_path / "generation_config.json").write_text("{")
    assert end_ids(tmp_path, config, library) == {2, 9, turn}


def test_a_grammar_can_be_kept_to(tokenizer: PretrainedTokenizer) -> None:
    vocabulary = GuidedVocabulary(tokenizer)
    assert vocabulary.end_ids == [2]
    assert vocabulary.spell_out("a1") is not None


def test_a_way_to_spell_that_is_not_known_is_refused() -> None:
    def change(made: Tokenizer) -> None:
        made.decoder = decoders.WordPiece()

    with pytest.raises(ModelUnsupported, match="WordPiece"):
        PretrainedTokenizer(tiny_tokenizer(WORDS, change), frozenset({2}), max_tokens=WORDS)
