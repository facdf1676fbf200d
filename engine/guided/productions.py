"""What the rules of a grammar are made of, and what can be said of them alone.

Characters  one character of a set
Sequence    one after the other; empty: nothing
Choice      one of several
Repeat      the same thing from `least` to `most` times; None: without an end
Reference   whatever another rule describes
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

LAST_CODE = 0x10FFFF
SURROGATES = 0xD800, 0xDFFF

Ranges = tuple[tuple[int, int], ...]
"""Code points, both ends included; in order, apart, and without surrogates."""


@dataclass(frozen=True, slots=True, eq=False)
class Characters:
    ranges: Ranges


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    options: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    body: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    name: str


Node = Characters | Sequence | Choice | Repeat | Reference
Rules = Mapping[str, Node]


def ranges_of(pairs: list[tuple[int, int]], *, is_negated: bool = False) -> Ranges:
    """In order and apart. `is_negated`: all other characters."""
    low, high = SURROGATES
    if is_negated:
        pairs = [*pairs, SURROGATES]
    else:
        pairs = [
            part
            for first, last in pairs
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
        ]
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pair for pair in pairs if pair[0] <= pair[1]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    if not is_negated:
        return tuple(merged)
    ends = [-1, *(last for _, last in merged)]
    begins = [*(first for first, _ in merged), LAST_CODE + 1]
    gaps = ((end + 1, begin - 1) for end, begin in zip(ends, begins, strict=True))
    return tuple((first, last) for first, last in gaps if first <= last)


def inner(node: Node) -> tuple[Node, ...]:
    """What stands right in it."""
    match node:
        case Sequence(parts):
            return parts
        case Choice(options):
            return options
        case Repeat(body):
            return (body,)
    return ()


def references(node: Node) -> Iterator[str]:
    if isinstance(node, Reference):
        yield node.name
    for part in inner(node):
        yield from references(part)


def literals_of(rules: Rules) -> list[str]:
    """The texts that stand in rules as they are, each once."""
    found: dict[str, None] = {}
    for node in rules.values():
        waiting = [node]
        while waiting:
            each = waiting.pop()
            text = ""
            for part in each.parts if isinstance(each, Sequence) else (each,):
                if isinstance(part, Characters) and _is_one(part):
                    text += chr(part.ranges[0][0])
                elif text:
                    found[text] = None
                    text = ""
            if text:
                found[text] = None
            waiting += inner(each)
    return list(found)


def _is_one(characters: Characters) -> bool:
    return len(characters.ranges) == 1 and characters.ranges[0][0] == characters.ranges[0][1]


def rules_with_an_end(rules: Rules) -> frozenset[str]:
    """Those that some text satisfies."""

    def num_needed(node: Node) -> int:
        match node:
            case Choice():
                return 1
            case Repeat(least=least):
                return min(least, 1)
        return len(inner(node))

    return _growing(rules, num_needed)


def regular_rules(rules: Rules) -> frozenset[str]:
    """Those that come to an end when each reference is replaced by its rule."""
    return _growing(rules, lambda node: len(inner(node)))


def _growing(rules: Rules, num_needed: Callable[[Node], int]) -> frozenset[str]:
    """The rules that hold. A node does once it holds for so many of those that stand right in it,
    a reference once its rule does.

    Each counts what it still lacks, so everything is looked at once, however rules use each other
    (Dowling and Gallier, "Linear-time algorithms for testing the satisfiability of propositional
    Horn formulae", 1984).
    """
    lacking: dict[Node | str, int] = dict.fromkeys(rules, 1)
    users: defaultdict[Node | str, list[Node | str]] = defaultdict(list)
    for name, node in rules.items():
        users[node].append(name)
    holding: list[Node | str] = []
    unseen = list(rules.values())
    while unseen:
        node = unseen.pop()
        if node in lacking:
            continue
        if isinstance(node, Reference):
            lacking[node] = 1
            users[node.name].append(node)
            continue
        lacking[node] = num_needed(node)
        if not lacking[node]:
            holding.append(node)
        for part in inner(node):
            users[part].append(node)
            unseen.append(part)
    while holding:
        for user in users[holding.pop()]:
            lacking[user] -= 1
            if lacking[user] == 0:
                holding.append(user)
    return frozenset(name for name in rules if lacking[name] <= 0)


def with_loops(rules: Rules) -> Rules:
    """The same language, with a repetition where a rule only goes on with itself at one end.

    `word ::= [a-z] word | [a-z]` becomes `[a-z]* [a-z]`, which needs no recursion.
    """
    return {name: _with_loop(name, node) for name, node in rules.items()}


def _with_loop(name: str, node: Node) -> Node:
    options = node.options if isinstance(node, Choice) else (node,)
    for place in (-1, 0):
        goes_on = [option for option in options if _is_itself(name, option, place)]
        others = [option for option in options if not _is_itself(name, option, place)]
        steps = [
            option.parts[:-1] if place else option.parts[1:]
            for option in goes_on
            if isinstance(option, Sequence)
        ]
        left = [*others, *itertools.chain.from_iterable(steps)]
        if goes_on and not any(name in references(each) for each in left):
            loop = Repeat(Choice(tuple(map(Sequence, steps))), 0, None)
            end = Choice(tuple(others))
            return Sequence((loop, end) if place else (end, loop))
    return node


def _is_itself(name: str, option: Node, place: int) -> bool:
    if not isinstance(option, Sequence) or len(option.parts) < 2:
        return False
    part = option.parts[place]
    return isinstance(part, Reference) and part.name == name
