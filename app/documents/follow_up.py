"""Whether a question leans on the one before it: it is short, or it has a word for what was named.

By lists alone; no model is asked.
"""

import re

from app.documents.words import Script, fold, languages, question_terms

MOST_WORDS = 3
MOST_CHARACTERS = 8
"""Of a question in a script without spaces, beside its common words."""
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


def leans(question: str) -> bool:
    """Whether it may be about what the question before it was about."""
    terms = question_terms(question)
    folded = fold(question)
    words = re.findall(r"\w+", folded)
    if _POINTING_DENSE.search(folded) or any(
        not _POINTING[language].isdisjoint(words) for language in languages(folded)
    ):
        return True
    dense = sum(len(term.word) for term in terms if term.script is Script.DENSE)
    others = sum(term.script is not Script.DENSE for term in terms)
    return dense <= MOST_CHARACTERS and others <= MOST_WORDS


def together(earlier: str, question: str) -> str:
    """What is searched for in the place of a question that leans on an earlier one."""
    return f"{earlier[-LONGEST_SEARCHED:]}\n{question}"
