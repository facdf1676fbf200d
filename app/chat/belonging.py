"""Whose words a request carries, and what may become of their KV: the one place that decides it.

a conversation             its own; on the disk, too, unless it is temporary
what it begins with        a document's, if it is read whole: for every conversation about it
`user` of a /v1 request    the user's, under a name of ours; on the disk, too
anything else              nobody's; gone when the room is needed, never on the disk
"""

from hashlib import blake2b

from engine.kv.segment import NOBODY, WITH, Belonging
from engine.request import RequestOptions

TEMPORARY = "tmp-"
"""The ids of a temporary conversation and of its messages begin with this."""
PROGRAM = "v1:"
DOCUMENT = "doc:"


def is_temporary(some_id: str) -> bool:
    """Whether this conversation or message must never reach the disk."""
    return some_id.startswith(TEMPORARY)


def is_reserved(some_id: str) -> bool:
    """Whether an id from elsewhere would be taken for something that it is not."""
    return some_id.startswith((TEMPORARY, PROGRAM, DOCUMENT)) or WITH in some_id


def program_owner(user: str) -> str:
    """The owner of what a program says for one of its users; empty when it names none.

    A digest, since names and addresses of people stand in this field, and owners on the disk.
    """
    if not user:
        return ""
    digest = blake2b(user.encode("utf-8", "replace"), digest_size=16)
    return PROGRAM + digest.hexdigest()


def document_source(sha256: str) -> str:
    """The source that a document with these bytes is, with which several conversations begin."""
    return DOCUMENT + sha256[:32]


def belonging_of(owner: str) -> Belonging:
    """Of the words of `owner`: a conversation's id, or what `program_owner` gave."""
    return Belonging(owner=owner, is_durable=not is_temporary(owner)) if owner else NOBODY


def request_options(
    owner: str = "",
    *,
    is_reproducible: bool = False,
    is_background: bool = False,
    is_preparation: bool = False,
    num_logprobs: int | None = None,
) -> RequestOptions:
    """How the engine treats a request with the words of `owner`."""
    return RequestOptions(
        belonging=belonging_of(owner),
        is_background=is_background,
        is_preparation=is_preparation,
        is_reproducible=is_reproducible,
        num_logprobs=num_logprobs,
    )
