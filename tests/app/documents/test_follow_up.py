"""Questions that lean on the one before them, in several languages, by lists alone."""

import pytest

from app.documents.follow_up import LONGEST_SEARCHED, leans, together


@pytest.mark.parametrize(
    "question",
    [
        "And who designed it in the end, after all these delays?",
        "How much did they spend on the renovation of that old building?",
        "Why?",
        "And the height?",
        "Wer hat sie nach dem Krieg wieder aufgebaut und bezahlt?",
        "Und wann?",
        "¿Cuánto dinero costó esta obra al ayuntamiento de la ciudad?",
        "Combien elle a coûté à la commune pendant les travaux publics?",
        "Сколько денег он заплатил архитектору за строительство моста?",
        "كم دفع المهندس ثمنا لهذا البناء وما اسم مالكه القديم؟",
        "它是由哪位著名的建筑师设计并且出资建造的？",
        "それは有名な建築家によって設計されましたか、費用はいくらですか",
        "高度呢？",
    ],
)
def test_a_short_one_or_one_that_points_back_leans(question: str) -> None:
    assert leans(question)


@pytest.mark.parametrize(
    "question",
    [
        "When was the Valser bridge in Meran opened to traffic?",
        "Wann wurde die Valser Brücke bei Meran für den Verkehr geöffnet?",
        "¿Cuándo abrieron el puente antiguo de la ciudad de Merano al tráfico?",
        "Когда открыли старый городской мост Мерано для движения автомобилей?",
        "متى افتتح الجسر القديم لمدينة ميرانو امام حركة السيارات؟",
        "梅拉诺市的古老大桥什么时候对汽车交通开放通行？",
    ],
)
def test_a_whole_question_stands_alone(question: str) -> None:
    assert not leans(question)


@pytest.mark.parametrize("question", ["Who is the king of France?", "Who was Napoleon?"])
def test_a_short_one_with_a_name_of_its_own_stands_alone(question: str) -> None:
    assert not leans(question)
    assert leans("And in Vienna?") and not leans("And in Vienna?", is_known=False)


@pytest.mark.parametrize(
    "question",
    [
        "Which emperor wore golden crowns when he died?",
        "Wie heißt der König von Frankreich?",
        "whose castle burned",
        "法国国王叫什么名字？",
    ],
)
def test_one_of_words_that_the_library_has_not_stands_alone(question: str) -> None:
    assert not leans(question, is_known=False)
    assert leans("Who drew its plans?", is_known=False) and leans("And the height?", is_known=False)


def test_what_is_looked_for_does_not_grow_for_ever() -> None:
    assert together("One?", "Two?") == "One?\nTwo?"
    assert len(together("x" * 10_000, "Two?")) == LONGEST_SEARCHED + 5
