"""Whether a question leans on the one before it: it has a word for what was named, or says
too little to stand alone. One that is short and of something else must not be answered from what
the earlier one finds.

By lists, and by whether the library has its words; no model is asked.
"""

import re

from app.documents.exact import exact_in, nouns_have_capitals
from app.documents.stop_words import STOP_WORDS
from app.documents.words import Script, fold, languages, question_terms

MOST_WORDS = 3
LEAST_WORDS = 2
"""With fewer of its own a question stands alone only if one of them is a name."""
MOST_STRANGE = 2
"""With more words, none of which the library has, it is of something else, wherever it points."""
MOST_CHARACTERS = 8
"""Of a question in a script without spaces, beside its common words."""
LEAST_CHARACTERS = 3
LONGEST_SEARCHED = 400
"""Characters of what is searched for; a longer line of questions begins anew."""

_POINTING = {
    language: frozenset(words.split())
    for language, words in {
        "en": "he she it its they them their theirs his her hers him this that these those there"
        " then one",
        "de": "er sie es ihn ihm ihr ihre ihrer ihren sein seine seiner seinen dies diese dieser"
        " dieses dessen deren dort damals davon dazu damit daran",
        "es": "ella ello ellos ellas su sus este esta esto estos estas ese esa eso esos aquel"
        " aquella alli entonces",
        "fr": "elle ils elles lui leur leurs sa ses ce cette ces cela celui celle y",
        "it": "lui lei loro suo sua suoi sue questo questa questi queste quello quella",
        "pt": "ele ela eles elas seu sua seus suas isso isto este esta esse essa aquele aquela",
        "nl": "hij zij ze hem haar hun dit dat deze daar toen",
        "ru": "он она оно они его ее их ему еи им него нее них этот эта это эти этого этои тот там"
        " тогда",
        "ar": "لهذا بهذا وهذا وهو وهي"
        " هو هي هم هن هذا هذه ذلك تلك هولاء هناك له لها لهم منه منها فيه فيها عنه عنها به بها",
    }.items()
}
_POINTING_DENSE = re.compile(
    "它|他|她|這|这|那|其|该|此|それ|これ|あれ|その|この|あの|彼|そこ|그것|그는|그녀|그들|이것|มัน|เขา|เธอ|นั้น|นี้"
)
_GOING_ON = re.compile(
    r"\W*(?:and|or|but|und|oder|aber|y|pero|et|ou|mais|ed|e|ma|mas|en|maar|и|а|но)\b"
)


def leans(question: str, *, is_known: bool = True) -> bool:
    """Whether it may be about what the question before it was about. `is_known`: the library has
    one of its words."""
    terms = [each for each in question_terms(question) if each.word not in STOP_WORDS]
    folded = fold(question)
    words = re.findall(r"\w+", folded)
    dense = sum(len(term.word) for term in terms if term.script is Script.DENSE)
    others = sum(term.script is not Script.DENSE for term in terms)
    if not is_known and others > MOST_STRANGE:
        return False
    if _POINTING_DENSE.search(folded) or any(
        not _POINTING[language].isdisjoint(words) for language in languages(folded)
    ):
        return True
    if dense > MOST_CHARACTERS or others > MOST_WORDS:
        return False
    has_name = bool(exact_in(question, has_names=not nouns_have_capitals(question)).names)
    if not has_name and dense < LEAST_CHARACTERS and others < LEAST_WORDS:
        return True
    return is_known and (not has_name or _GOING_ON.match(folded) is not None)


def together(earlier: str, question: str) -> str:
    """What is searched for in the place of a question that leans on an earlier one."""
    return f"{earlier[-LONGEST_SEARCHED:]}\n{question}"
