"""What a command was asked to do: plain values that can travel to the running app."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.presets.preset import Preset
from engine.guided.grammar import Grammar, GrammarKind
from engine.sampling.beam import BeamParams, EarlyStopping
from engine.sampling_params import SamplingParams, with_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`command` is what to do; the other fields are read by the commands that know them.

    Files are absolute paths, since the command may be carried out in another folder.
    """

    command: str
    action: str = ""
    text: str = ""
    ids: tuple[str, ...] = ()
    file: str = ""
    files: tuple[str, ...] = ()
    collection: str = ""
    whole: bool = False
    password: str = field(default="", repr=False)
    """Of files that need one; it travels to who reads them, and is kept nowhere."""
    model: str = ""
    draft_model: str = ""
    adapters: tuple[tuple[str, float], ...] = ()
    mmproj: str = ""
    backend: str = "auto"
    """Who computes; "auto": whoever suits, or is at it in the running app."""
    images: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()
    system: str = ""
    json: bool = False
    yes: bool = False
    repair: bool = False
    copy: bool = False
    available: bool = False
    query_prefix: str | None = None
    passage_prefix: str | None = None
    languages: tuple[str, ...] | None = None
    """Of an embedding model; None: what is known of it."""
    quantization: str = ""
    again: bool = False
    torch_index: str = ""
    anyway: bool = False
    source: str = ""
    """Where to ask for a newer version; empty: where this build says."""
    self_test: bool = False
    report: bool = False
    reproducible: bool = True
    preset: str = ""
    grammar_kind: str = ""
    grammar: str = ""
    """The form of the answer, written in the language that `grammar_kind` names."""
    grammar_examples: tuple[str, ...] = ()
    approximate: bool = False
    num_answers: int = 1
    logprobs: int | None = None
    num_beams: int | None = None
    """None: no beam search."""
    length_penalty: float = 1.0
    early_stopping: str = EarlyStopping.NO.value
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Any) -> "Options":
        """What `dataclasses.asdict` made of one. Raises TypeError for anything else."""
        options = cls(**values)
        return replace(
            options,
            ids=tuple(options.ids),
            images=tuple(options.images),
            sounds=tuple(options.sounds),
            files=tuple(options.files),
            languages=None if options.languages is None else tuple(options.languages),
            adapters=tuple((str(file), float(scale)) for file, scale in options.adapters),
            grammar_examples=tuple(options.grammar_examples),
        )

    def form(self) -> Grammar | None:
        """The form that the answer is to have, or None."""
        if not self.grammar_kind:
            return None
        return Grammar(
            GrammarKind(self.grammar_kind), self.grammar, self.approximate, self.grammar_examples
        )

    def beams(self) -> BeamParams:
        """Of a beam search that was asked for. Raises InvalidParams."""
        return BeamParams(
            num_beams=self.num_beams or 0,
            length_penalty=self.length_penalty,
            early_stopping=EarlyStopping(self.early_stopping),
            num_answers=self.num_answers,
        )

    def params(self, defaults: SamplingParams, preset: Preset | None = None) -> SamplingParams:
        """The preset or else the saved choices, with the controls that were given."""
        return with_changes(defaults if preset is None else preset.params, self.sampling)
