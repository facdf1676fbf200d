"""A Jinja environment that can neither reach out of the template nor run away."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.filters import FILTERS
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

WORK_LIMIT = 64_000_000
"""What one rendering may cost. A built character costs 1, a round of a loop `ROUND`."""
ROUND = 50
RANGE_LIMIT = 10_000
SOURCE_LIMIT = 500_000

KEPT_FILTERS = (
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "sort",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
    "wordcount",
)
"""What chat templates use. The others build text of any length, or roll dice."""

_WIDE = re.compile(r"\d{4}|\*|\{[^}]*\{")


class TemplateRunaway(SecurityError):
    """The template costs more than a chat template may."""


class _Generation(Extension):
    """`{% generation %}` marks answers for training; for a chat it means nothing."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """Renders chat templates on a budget. One rendering at a time.

    Without a loader there are no files; the parent class keeps Python's insides out of reach.
    Time and memory are kept by counting: every round of a loop, every macro call and everything
    that builds text pays into one sum. A count stops at the same place on every machine.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _Generation],
            finalize=self._finalize,
            optimized=False,
            cache_size=0,
        )
        self._work_left = WORK_LIMIT
        self.filters = {name: self._charged(FILTERS[name]) for name in KEPT_FILTERS}
        self.filters["tojson"] = self._to_json
        self.filters["safe"] = str
        self.globals = {
            "range": self._range,
            "namespace": self.globals["namespace"],
            "dict": dict,
        }
        self.concat = self._concat  # type: ignore[method-assign]

    def render(self, source: str, variables: Mapping[str, Any]) -> str:
        """Compile and render at once; see `prepare` for more than one rendering."""
        return self.prepare(source)(variables)

    def prepare(self, source: str) -> Callable[[Mapping[str, Any]], str]:
        """A function that renders `source` with the variables it is given."""
        if len(source) > SOURCE_LIMIT:
            raise TemplateRunaway(f"its text has {len(source):,} characters")
        self._work_left = WORK_LIMIT
        template = self.from_string(self._metered(self.parse(source)))

        def render(variables: Mapping[str, Any]) -> str:
            self._work_left = WORK_LIMIT
            return template.render(variables)

        return render

    def _metered(self, tree: nodes.Template) -> nodes.Template:
        """The same template with a toll at every place that can be repeated."""
        for loop in tree.find_all(nodes.For):
            if loop.test is not None:
                loop.test = self._built(nodes.And(self._toll(), loop.test), loop)
        for kind in (nodes.For, nodes.Macro, nodes.CallBlock):
            block: Any
            for block in tree.find_all(kind):
                block.body.insert(0, self._built(nodes.ExprStmt(self._toll()), block))
        self._replace_concat(tree)
        return tree

    def _replace_concat(self, node: Any) -> Any:
        """`a ~ b` as a call, because the sandbox cannot intercept the operator."""
        for name, value in node.iter_fields():
            if isinstance(value, list):
                value[:] = [
                    self._replace_concat(item) if isinstance(item, nodes.Node) else item
                    for item in value
                ]
            elif isinstance(value, nodes.Node):
                setattr(node, name, self._replace_concat(value))
        if isinstance(node, nodes.Concat):
            join = nodes.EnvironmentAttribute("join_text")
            return self._built(nodes.Call(join, node.nodes, [], None, None), node)
        return node

    def _toll(self) -> nodes.Expr:
        return nodes.EnvironmentAttribute("paid_round")

    def _built(self, node: Any, beside: nodes.Node) -> Any:
        return node.set_lineno(beside.lineno).set_environment(self)

    @property
    def paid_round(self) -> bool:
        """Read by the compiled template once a round; a call would cost it twenty times more."""
        self._pay(ROUND)
        return True

    def join_text(self, *values: Any) -> str:
        """`~` of the template language."""
        return self._concat([str(self._finalize(value)) for value in values])

    def _pay(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise TemplateRunaway("it does not come to an end, or writes without bound")

    def _finalize(self, value: Any) -> Any:
        """A list that holds itself twice, forty times over, is short to say and long to print."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, Mapping):
                self._pay(2 * ROUND * len(item))
                waiting += [*item.keys(), *item.values()]
            elif isinstance(item, list | tuple | set | frozenset):
                self._pay(2 * ROUND * len(item))
                waiting += item
            elif isinstance(item, str) and item is not value:
                self._pay(len(item))
        return value

    def _concat(self, pieces: Iterable[str]) -> str:
        kept = []
        for piece in pieces:
            self._pay(len(piece) + 1)
            kept.append(piece)
        return "".join(kept)

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        if len(numbers) > RANGE_LIMIT:
            raise TemplateRunaway(f"a range has {len(numbers):,} numbers")
        self._pay(len(numbers))
        return numbers

    def _charged(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(apply)
        def charged(*args: Any, **options: Any) -> Any:
            return apply(*self._charge(apply.__name__, args, options), **options)

        return charged

    def _charge(
        self, name: str, args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Pay for what a call with these arguments can build; generators come back as lists."""
        if "join" in name:
            args = tuple(list(arg) if hasattr(arg, "__next__") else arg for arg in args)
        given = [*args, *options.values()]
        lengths = [len(arg) for arg in given if isinstance(arg, str | list | tuple | dict | range)]
        numbers = [abs(arg) for arg in given if isinstance(arg, int)]
        self._pay(ROUND + sum(lengths))
        if max(numbers, default=0) > RANGE_LIMIT:
            raise TemplateRunaway(f"it asks for {max(numbers):,} of something")
        if {"replace", "join", "indent", "expandtabs"} & set(name.split("_")):
            # Each of these writes one argument once for every item or character of another.
            self._finalize(given)
            self._pay(max(lengths, default=0) * max([1, *numbers, *sorted(lengths)[:-1]]))
        return args

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        __self._pay(10 * ROUND)
        owner = getattr(__obj, "__self__", getattr(__obj, "__wrapped__", None))
        owner = getattr(owner, "__self__", owner)
        if isinstance(owner, str):
            name = getattr(__obj, "__name__", "")
            if name in {"format", "format_map"} and _WIDE.search(owner):
                raise TemplateRunaway("it pads text without bound")
            _, *charged = __self._charge(name, (owner, *args), kwargs)
            args = tuple(charged)
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and type(left) is str and type(right) is str:
            # Most of what templates do, and most of what a long conversation's rendering costs.
            self._pay(len(left) + len(right))
            return left + right
        sized = [side for side in (left, right) if isinstance(side, str | list | tuple)]
        numbers = [side for side in (left, right) if isinstance(side, int)]
        if operator == "*" and sized and numbers:
            self._pay(len(sized[0]) * max(numbers[0], 1))
        elif operator == "%" and isinstance(left, str):
            if _WIDE.search(left):
                raise TemplateRunaway("it pads text without bound")
            self._finalize([left, right])
        elif sized:
            self._pay(sum(len(side) for side in sized))
        elif any(abs(number) > 2**64 for number in numbers) or (
            operator == "**" and any(abs(number) > 64 for number in numbers)
        ):
            raise TemplateRunaway("it computes with numbers that are too large")
        return super().call_binop(context, operator, left, right)

    def _to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Jinja's own writes `<` and `'` as escapes, which no model has seen in training."""
        self._finalize([value])
        self._charge("tojson", (indent or 0,), {})
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )
