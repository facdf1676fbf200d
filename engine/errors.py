"""Every error that a person may read: one sentence, the figures, the remedy."""


class InglenookError(Exception):
    """The root of the tree. `str(error)` is shown to the user as it is."""


class UsageError(InglenookError):
    """The command or the request was formed wrongly; nothing was started."""


class InvalidParams(UsageError):
    """A sampling or engine parameter is out of its range."""


class GrammarError(UsageError):
    """A form cannot be understood or not be kept to; nothing was started."""


class PromptTooLong(InglenookError):
    """The prompt does not fit the context; nothing was computed."""

    def __init__(self, num_tokens: int, max_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.max_tokens = max_tokens
        super().__init__(
            f"This needs {num_tokens:,} tokens and the context holds {max_tokens:,}: shorten the"
            " message, start a new conversation, or choose a larger context in the settings."
        )


class ModelError(InglenookError):
    """A model cannot be used; the sentence says why and what to do."""


class ModelNotFound(ModelError):
    """There is no file at the place where the model should be."""


class ModelDamaged(ModelError):
    """The file is no GGUF, or it is cut off or inconsistent."""


class ModelUnsupported(ModelError):
    """The file is sound, and this build cannot run what is in it."""


class OutOfMemory(ModelError):
    """The machine has too little memory for the model or its context."""


class DownloadError(InglenookError):
    """A file or an answer could not be brought from another machine; what has come is kept."""


class DownloadEnded(DownloadError):
    """As above, and trying again by itself would not help."""


class InstallationFailed(InglenookError):
    """An installation could not be made; nothing of it is used."""


class TemplateError(InglenookError):
    """The model's chat template cannot be understood or refuses these messages."""


class EngineError(InglenookError):
    """One request failed while it was computed; other requests go on."""


class GrammarFailed(EngineError):
    """An answer could not be kept to its form any further."""


class NoTokenLeft(EngineError):
    """What one request bans leaves nothing that could come next."""


class EngineDead(InglenookError):
    """The engine has stopped; a restart is needed."""


class HomeError(InglenookError):
    """The folders of the app cannot be used."""


class HomeBusy(HomeError):
    """Another process owns this home."""


class PortTaken(HomeError):
    """The port that was asked for is in use."""


class HistoryError(InglenookError):
    """The history could not be read or written."""


class NotFound(HistoryError):
    """No conversation or message has this id."""


class DatabaseNewer(HistoryError):
    """The database was written by a newer version of the app."""


class DiskFull(HistoryError):
    """There is no room left to store; what was stored before is kept."""
