"""Which pieces of a grammar may be lexemes: as long as can be, and never so that a text is lost.

llguidance reads lexemes, each as far as it goes, and then asks a parser which may come next. That
is fast, and after `[a-z]+` it refuses an `end` that the grammar allows. Grammars as llama.cpp reads
them have no lexemes: every character is as good as any other. So whatever needs no recursion is one
lexeme at first, and one that another at the same place could read on beyond, with a character that
may also follow it, is broken into its parts, down to characters where it must be.

Two lexemes are at the same place when both may follow a third, or two that may be the same text.
That says more than the truth (as SLR does), so a lexeme is rather broken than kept.
"""

from collections.abc import Iterator
from functools import cache

from engine.guided.automaton import (
    Alphabet,
    Automaton,
    Meeting,
    Patience,
    TooLarge,
    automaton_of,
    meeting,
)
from engine.guided.pieces import (
    Call,
    Following,
    Lexeme,
    Piece,
    Pieces,
    Row,
    Times,
    calls,
    each_bit,
    either,
    lexemes_of,
    row,
)
from engine.guided.productions import (
    Characters,
    Choice,
    Node,
    Reference,
    Repeat,
    Rules,
    Sequence,
    inner,
    regular_rules,
)

# They take about a second.
MOST_STEPS = 150_000
# Of a grammar without recursion, which is not looked at any further.
MOST_CHARACTERS = 100_000


class Lexer:
    """Divides the rules of one grammar."""

    def __init__(self, rules: Rules, root: str) -> None:
        self._rules = rules
        self._root = root
        self._regular = regular_rules(rules)
        self._broken: set[Node] = set()
        # The same node gives the same lexeme, however often the rules are divided.
        self._lexemes: dict[Node, Lexeme] = {}
        self._groups: dict[tuple[Node, ...], Node] = {}
        self._alphabet = Alphabet(list(_all_characters(rules)))
        self._automata: dict[Lexeme, Automaton | None] = {}
        self._meetings: dict[tuple[Lexeme, Lexeme], Meeting] = {}
        self._patience = Patience(MOST_STEPS)
        self._is_regular = cache(self._find_regular)
        self._is_nullable = cache(self._find_nullable)
        self._size = cache(self._find_size)

    def pieces(self) -> Pieces:
        """Of the root and of each rule that it calls, in which every text of the grammar is read.

        Raises GrammarError when that takes too long to find out.
        """
        all_of_it = self._rules[self._root]
        if self._is_regular(all_of_it) and self._size(all_of_it) <= MOST_CHARACTERS:
            # Nothing follows the one lexeme that it is.
            return {self._root: self._lexeme_or_nothing(all_of_it)}
        while True:
            pieces = self._divided()
            self._patience.take(len(self._lexemes))
            conflicts = self._conflicts(pieces)
            if not conflicts:
                return pieces
            self._broken |= conflicts

    def _divided(self) -> Pieces:
        pieces: Pieces = {}
        waiting = [self._root]
        while waiting:
            name = waiting.pop()
            if name not in pieces:
                pieces[name] = self._divide(self._rules[name])
                waiting += calls(pieces[name])
        return pieces

    def _divide(self, node: Node) -> Piece:
        if self._is_regular(node):
            if node not in self._broken:
                return self._lexeme_or_nothing(node)
        elif isinstance(node, Sequence):
            return row([self._divide(part) for part in self._grouped(node.parts)])
        elif isinstance(node, Choice):
            return self._options(node)
        match node:
            case Sequence(parts):
                return row([self._divide(part) for part in parts])
            case Choice(options):
                return either([self._divide(option) for option in options])
            case Repeat(body, least, most):
                return Times(self._divide(body), least, most)
            case Reference(name):
                return Call(name)
        raise AssertionError("one character is never broken")

    def _options(self, node: Choice) -> Piece:
        regular = tuple(each for each in node.options if self._is_regular(each))
        others = [self._divide(each) for each in node.options if not self._is_regular(each)]
        together = self._group(regular, Choice(regular)) if regular else None
        return either([*([self._divide(together)] if together else []), *others])

    def _grouped(self, parts: tuple[Node, ...]) -> Iterator[Node]:
        """With everything regular that stands together as one."""
        group: list[Node] = []
        for part in [*parts, None]:
            if part is not None and self._is_regular(part):
                group.append(part)
                continue
            if group:
                yield self._group(tuple(group), Sequence(tuple(group)))
            group = []
            if part is not None:
                yield part

    def _group(self, parts: tuple[Node, ...], node: Node) -> Node:
        return parts[0] if len(parts) == 1 else self._groups.setdefault(parts, node)

    def _find_regular(self, node: Node) -> bool:
        if isinstance(node, Reference):
            return node.name in self._regular
        return all(map(self._is_regular, inner(node)))

    def _lexeme_or_nothing(self, node: Node) -> Piece:
        is_nullable = self._is_nullable(node)
        lexeme = self._lexemes.setdefault(node, Lexeme(node, is_nullable))
        automaton = self._automaton(lexeme)
        if automaton is not None and not automaton.characters:
            return Row(())
        return Times(lexeme, 0, 1) if is_nullable else lexeme

    def _find_nullable(self, node: Node) -> bool:
        match node:
            case Characters():
                return False
            case Sequence(parts):
                return all(map(self._is_nullable, parts))
            case Choice(options):
                return any(map(self._is_nullable, options))
            case Repeat(body, least):
                return least == 0 or self._is_nullable(body)
            case Reference(name):
                return self._is_nullable(self._rules[name])

    def _find_size(self, node: Node) -> int:
        """In sets of characters, once every rule stands where it is referred to."""
        if isinstance(node, Reference):
            return self._size(self._rules[node.name])
        return max(1, sum(map(self._size, inner(node))))

    # Conflicts

    def _conflicts(self, pieces: Pieces) -> set[Node]:
        """Nodes that must be broken: of two lexemes one of which reads on beyond the other."""
        lexemes = lexemes_of(pieces)
        self._patience.take(len(lexemes))
        automata = [self._automaton(lexeme) for lexeme in lexemes]
        if None in automata:
            return {
                lexeme.node
                for lexeme, automaton in zip(lexemes, automata, strict=True)
                if automaton is None
            }
        following = Following(pieces, self._root, lexemes, self._patience)
        # Many are followed by the same ones.
        begins = {after: self._begins(lexemes, after) for after in {*following.after}}
        conflicts: set[Node] = set()
        for one, other in self._beside(lexemes, following):
            if self._meeting(lexemes[one], lexemes[other]).goes_on & begins[following.after[one]]:
                conflicts |= {lexemes[one].node, lexemes[other].node}
        return {node for node in conflicts if not isinstance(node, Characters)}

    def _begins(self, lexemes: list[Lexeme], among: int) -> int:
        """The characters with which some of the lexemes begin."""
        found = 0
        for number in each_bit(among):
            found |= self._known(lexemes[number]).first_characters
        return found

    def _beside(self, lexemes: list[Lexeme], following: Following) -> Iterator[tuple[int, int]]:
        """Pairs that may be read from the same place on."""
        beside = [0] * len(lexemes)
        waiting = [following.begin, *following.after]
        seen: set[int] = set()
        while waiting:
            together = waiting.pop()
            if together in seen:
                continue
            seen.add(together)
            for one in each_bit(together):
                new = together & ~beside[one]
                beside[one] |= together
                for other in each_bit(new):
                    self._patience.take()
                    yield one, other
                    if one != other and self._meeting(lexemes[one], lexemes[other]).is_same:
                        waiting.append(following.after[one] | following.after[other])

    def _meeting(self, one: Lexeme, other: Lexeme) -> Meeting:
        if (one, other) not in self._meetings:
            automata = self._known(one), self._known(other)
            self._meetings[one, other] = meeting(*automata, self._patience)
        return self._meetings[one, other]

    def _known(self, lexeme: Lexeme) -> Automaton:
        automaton = self._automaton(lexeme)
        assert automaton is not None, "what is too large is broken first"
        return automaton

    def _automaton(self, lexeme: Lexeme) -> Automaton | None:
        """None: it is too large."""
        if lexeme not in self._automata:
            try:
                self._automata[lexeme] = automaton_of(
                    lexeme.node, self._rules, self._alphabet, self._patience
                )
            except (TooLarge, RecursionError):
                self._automata[lexeme] = None
        return self._automata[lexeme]


def _all_characters(rules: Rules) -> Iterator[Characters]:
    waiting = list(rules.values())
    while waiting:
        node = waiting.pop()
        if isinstance(node, Characters):
            yield node
        waiting += inner(node)
