"""The places of a regular piece of a grammar, to find out where two pieces can be mistaken.

Glushkov's construction: a place for each set of characters, those where a text may begin and end,
and for each place those that may come next. Longer repetitions count as endless here, so a piece
has at least the texts that it really has, and whatever is found harmless is.
"""

from dataclasses import dataclass, field

from engine.errors import GrammarError
from engine.guided.productions import (
    Characters,
    Choice,
    Node,
    Reference,
    Repeat,
    Rules,
    Sequence,
)

MOST_PLACES = 2_000
# Repetitions up to here are written out.
MOST_WRITTEN_OUT = 3


class TooLarge(Exception):
    """A piece has too many places to be looked at."""


class Patience:
    """How many steps may still be gone, of all that is looked at in one grammar."""

    def __init__(self, num_steps: int) -> None:
        self._num_left = num_steps

    def take(self, num_steps: int = 1) -> None:
        """Raises GrammarError when there are none left."""
        self._num_left -= num_steps
        if self._num_left < 0:
            raise GrammarError(
                "The grammar is too complicated: too many of its parts can be mistaken for each"
                " other; make it smaller."
            )


class Alphabet:
    """Sets of characters as bits, one for each group that no set of the grammar divides."""

    def __init__(self, sets: list[Characters]) -> None:
        borders = {
            border for each in sets for low, high in each.ranges for border in (low, high + 1)
        }
        self._index = {border: number for number, border in enumerate(sorted(borders))}

    def bits(self, characters: Characters) -> int:
        found = 0
        for low, high in characters.ranges:
            found |= (1 << self._index[high + 1]) - (1 << self._index[low])
        return found


@dataclass(slots=True)
class Automaton:
    """`characters[p]` are the bits of place p, `after[p]` the places that may follow it."""

    characters: list[int] = field(default_factory=list)
    after: list[set[int]] = field(default_factory=list)
    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    is_nullable: bool = False

    @property
    def first_characters(self) -> int:
        found = 0
        for place in self.first:
            found |= self.characters[place]
        return found


def automaton_of(node: Node, rules: Rules, alphabet: Alphabet, patience: Patience) -> Automaton:
    """Raises TooLarge, and GrammarError when there is no patience left."""
    automaton = Automaton()

    def add(node: Node) -> tuple[set[int], set[int], bool]:
        """Where it begins, where it ends, and whether it may be nothing."""
        patience.take()
        match node:
            case Characters():
                place = len(automaton.characters)
                if place >= MOST_PLACES:
                    raise TooLarge
                automaton.characters.append(alphabet.bits(node))
                automaton.after.append(set())
                return {place}, {place}, False
            case Sequence(parts):
                return in_order(parts)
            case Choice(options):
                added = [add(option) for option in options]
                return (
                    set().union(*(first for first, _, _ in added)),
                    set().union(*(last for _, last, _ in added)),
                    any(is_nullable for _, _, is_nullable in added),
                )
            case Repeat(body, least, most):
                return repeated(body, least, most)
            case Reference(name):
                return add(rules[name])

    def in_order(parts: tuple[Node, ...]) -> tuple[set[int], set[int], bool]:
        first: set[int] = set()
        last: set[int] = set()
        is_nullable = True
        for part in parts:
            begins, ends, may_be_nothing = add(part)
            for place in last:
                automaton.after[place] |= begins
            first |= begins if is_nullable else set()
            last = last | ends if may_be_nothing else ends
            is_nullable = is_nullable and may_be_nothing
        return first, last, is_nullable

    def repeated(body: Node, least: int, most: int | None) -> tuple[set[int], set[int], bool]:
        if most is not None and most <= MOST_WRITTEN_OUT:
            optional = Choice((body, Sequence(())))
            return in_order((body,) * least + (optional,) * (most - least))
        first, last, is_nullable = add(body)
        for place in last:
            automaton.after[place] |= first
        return first, last, is_nullable or least == 0

    automaton.first, automaton.last, automaton.is_nullable = add(node)
    return automaton


@dataclass(frozen=True, slots=True)
class Meeting:
    """Of two pieces that begin at the same place: `is_same`, whether one text may be both;
    `goes_on`, the characters with which the second goes on after a text that is the first."""

    is_same: bool
    goes_on: int


def meeting(one: Automaton, other: Automaton, patience: Patience) -> Meeting:
    """Raises GrammarError when there is no patience left."""
    is_same, goes_on = False, 0
    seen: set[tuple[int, int]] = set()
    waiting = [(a, b) for a in one.first for b in other.first]
    while waiting:
        pair = waiting.pop()
        patience.take()
        if pair in seen or not one.characters[pair[0]] & other.characters[pair[1]]:
            continue
        seen.add(pair)
        a, b = pair
        if a in one.last:
            is_same = is_same or b in other.last
            for place in other.after[b]:
                goes_on |= other.characters[place]
        waiting += [(c, d) for c in one.after[a] for d in other.after[b]]
    return Meeting(is_same, goes_on)
