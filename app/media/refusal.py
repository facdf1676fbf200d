"""Why a file is not taken."""


class Refusal(Exception):
    """`str(error)` goes on a sentence that begins with the file's name: "it is ..."."""
