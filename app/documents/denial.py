"""Whether a sentence may say that something is not in the passages, in the usual words for that.

The words alone do not tell that from a statement: "the rent does not include heating". So such a
sentence gets no mark of ours, while one that the model wrote is checked like any other.
"""

import re

_SAYING = (
    r"(?:mention|say|said|state|specif|provid|contain|includ|inform|indicat|give|answer|describ)"
)
_DENIALS = re.compile(
    "|".join(
        (
            rf"(?:\b(?:not|no|never|nothing|cannot)|n['’]t)\b[^.]{{0,40}}\b{_SAYING}",
            rf"\b{_SAYING}\w*\b[^.]{{0,20}}\b(?:nothing|no information|not)\b",
            r"\b(?:nicht|kein\w*|nichts)\b[^.]{0,40}\b(?:erwähn|genannt|gesagt|angegeben|enth|inform"
            r"|angabe|beantwort|steht)",
            r"\b(?:erwähn|steh|sag|nenn|enth)\w*\b[^.]{0,40}\b(?:nicht|nichts|kein\w*)\b",
            r"\b(?:no|ningun\w*|nada)\b[^.]{0,40}\b(?:mencion|dice|indica|informaci|contien|especific)",
            r"\b(?:ne|n['’]|pas|aucune?)\b[^.]{0,40}(?:mentionn|dit|indiqu|informati|contien|précis)",
            r"\bnon\b[^.]{0,40}\b(?:menzion|dic|indic|contien|informazion|specific)",
            r"\b(?:não|nenhum\w*)\b[^.]{0,40}\b(?:mencion|diz|indic|contém|informaç|especific)",
            r"\b(?:niet|geen)\b[^.]{0,40}\b(?:genoemd|vermeld|zeg|staat|informatie)",
            r"(?:не|нет)\s+(?:\w+\s+){0,3}(?:упомина|указ|говор|сказ|информац|содерж|сообща)",
            r"(?:没有|未|並未|并未|沒有)[^。]{0,10}(?:提到|提及|说明|說明|包含|信息|資訊|答案)",
            r"(?:記載|言及|書か|述べ|情報|答え)[^。]{0,10}(?:ない|ありません|ません)",
            r"(?:لا|لم|ليس)\s+[^.]{0,30}(?:يذكر|تذكر|يرد|معلومات|تحتوي|يحتوي|يقول)",
        )
    ),
    re.IGNORECASE,
)


def denies(sentence: str) -> bool:
    """A sentence of which this is right may be one that no passage could bear out."""
    return _DENIALS.search(sentence) is not None
