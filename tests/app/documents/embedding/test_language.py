import pytest

from app.documents.embedding.language import language_of, languages_of

TEXTS = {
    "en": "The house is on the river, and it was built by the town in the year of the war.",
    "de": "Das Haus steht an dem Fluss und wurde in dem Jahr des Krieges von der Stadt gebaut.",
    "es": "La casa est\u00e1 en el r\u00edo y fue construida por la ciudad en la guerra.",
    "ru": "\u0414\u043e\u043c \u043d\u0430 \u0440\u0435\u043a\u0435.",
    "ar": "\u0627\u0644\u0628\u064a\u062a \u0639\u0644\u0649 \u0627\u0644\u0646\u0647\u0631",
    "zh": "\u623f\u5b50\u5728\u6cb3\u8fb9\uff0c\u662f\u57ce\u5e02\u5efa\u7684\u3002",
    "ja": "\u5bb6\u306f\u5ddd\u306e\u307b\u3068\u308a\u306b\u3042\u308b\u3002",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_is_in_its_language(language: str) -> None:
    assert language_of(TEXTS[language] * 5) == language
    assert languages_of(TEXTS[language]) == (language,)


def test_a_name_of_a_language_with_other_letters_changes_nothing() -> None:
    assert language_of(TEXTS["en"] + " It is called \u6cb3\u8fb9 there.") == "en"
    assert language_of(TEXTS["zh"] * 3 + "Super Bowl 50") == "zh"


def test_a_program_and_a_list_of_figures_are_in_none() -> None:
    program = """
        values = load(path)
        for row in values:
            total += row.size
            counts[row.name] += 1
        return Table(total, counts)
    """
    assert language_of(program * 5) == ""
    assert language_of("Berlin 3,7\nHamburg 1,9\n" * 20) == ""
    assert language_of("") == ""


def test_a_question_without_small_words_may_be_in_any() -> None:
    assert languages_of("Panthers defense 2015") == ()
    assert "en" in languages_of("Who built the house?")
    assert "en" not in languages_of("Wer hat das Haus gebaut?")
