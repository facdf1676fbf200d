"""What a model can read beside text, and what is said where it cannot."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.backends.base import ModelInfo
from engine.errors import UsageError
from engine.loading import LoadedModel
from engine.media import Media, MediaKind

UNREAD = {
    MediaKind.IMAGE: "[A picture stood here, which you cannot see.]",
    MediaKind.AUDIO: "[A sound stood here, which you cannot hear.]",
}
_NAMES = {MediaKind.IMAGE: ("picture", "pictures"), MediaKind.AUDIO: ("sound", "sounds")}


@dataclass(frozen=True, slots=True)
class Senses:
    """Of one loaded model. `ids_of` gives what stands in a prompt for a picture or a sound; None:
    nothing can."""

    sees: bool = False
    hears: bool = False
    ids_of: Callable[[Media], tuple[int, ...]] | None = None

    @classmethod
    def of(cls, loaded: LoadedModel) -> "Senses":
        if loaded.media is None:
            return TEXT_ALONE
        return cls(loaded.info.reads_images, loaded.info.reads_audio, loaded.media.ids_of)

    def can_read(self, kind: MediaKind) -> bool:
        return self.sees if kind is MediaKind.IMAGE else self.hears


TEXT_ALONE = Senses()


def check_readable(info: ModelInfo, kinds: Iterable[MediaKind]) -> None:
    """Raises UsageError with the remedy where the model cannot read one of these."""
    senses = Senses(info.reads_images, info.reads_audio)
    for kind in kinds:
        if not senses.can_read(kind):
            raise UsageError(_refusal(info, kind))


def unread_notice(info: ModelInfo, media: Iterable[Media]) -> str:
    """What the user should know when these stand in a conversation; empty if all can be read."""
    senses = Senses(info.reads_images, info.reads_audio)
    kinds = [each.kind for each in media if not senses.can_read(each.kind)]
    if not kinds:
        return ""
    counts = [
        f"{kinds.count(kind)} {_NAMES[kind][kinds.count(kind) > 1]}"
        for kind in MediaKind
        if kind in kinds
    ]
    return (
        f"{info.name} cannot read the {' and '.join(counts)} of earlier messages; it was told that"
        " something stood there."
    )


def _refusal(info: ModelInfo, kind: MediaKind) -> str:
    if info.media_refusal:
        return info.media_refusal
    other = info.reads_images or info.reads_audio
    because = "its mmproj file is not for them" if other else "there is no mmproj file beside it"
    return (
        f"{info.name} cannot read {_NAMES[kind][1]} ({because}): choose a model that can under"
        " \u201cModels\u201d, or put the model's mmproj file into its folder."
    )
