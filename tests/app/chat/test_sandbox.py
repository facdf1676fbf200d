"""A hostile template is refused before it costs time or memory, and reaches nothing."""

import jinja2
import pytest

from app.chat.sandbox import Sandbox, TemplateRunaway


def rendered(source: str, **variables: object) -> str:
    return Sandbox().render(source, variables)


def sixty_times(start: str, step: str) -> str:
    return (
        "{% set n = namespace(s=" + start + ") %}"
        "{% for i in range(60) %}{% set n.s = " + step + " %}{% endfor %}{{ n.s }}"
    )


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{% set r = range(9999) %}"
        "{% for a in r %}{% for b in r if false %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
        "{{ f(60) }}",
        "{% for a in range(2) recursive %}{{ loop(range(2)) }}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for i in range(60) %}"
        "{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}{% endfor %}",
        sixty_times("'ab'", "n.s ~ n.s"),
        sixty_times("'ab'", "n.s + n.s"),
        sixty_times("'ab'", "n.s.join([n.s, n.s, n.s])"),
        sixty_times("'ab'", "[n.s, n.s] | join(n.s)"),
        sixty_times("'ab'", "'%s%s' % (n.s, n.s)"),
        sixty_times("'a'", "n.s.replace('a', 'aaaaaaaa')"),
        sixty_times("'a'", "n.s | replace('a', 'aaaaaaaa')"),
        sixty_times("[1]", "[n.s, n.s]"),
        sixty_times("[1]", "n.s + n.s"),
        sixty_times("3", "n.s * n.s"),
        "{{ 'a' * 1000000000 }}",
        "{{ 1000000000 * ['a'] }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ range(1000000000) | list }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 1000000000) }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a' | indent(1000000000, true) }}",
        "{{ [1] | tojson(indent=1000000000) }}",
        "{% set f = 'a'.center %}{{ f(1000000000) }}",
    ],
)
def test_a_template_that_runs_away_is_stopped(source: str) -> None:
    with pytest.raises((TemplateRunaway, RecursionError)):
        rendered(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ function.__globals__ }}",
        "{{ namespace.__init__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% include '/etc/hostname' %}",
        "{% import 'os' as os %}",
        "{% extends 'base' %}",
        "{{ lipsum() }}",
        "{{ messages.append(1) }}",
        "{{ ['a', 'b'] | random }}",
    ],
)
def test_a_template_reaches_nothing_outside(source: str) -> None:
    try:
        text = rendered(source, messages=[], function=test_a_template_reaches_nothing_outside)
    except (jinja2.TemplateError, TypeError):
        return
    assert text == ""


def test_the_budget_is_new_for_every_rendering() -> None:
    render = Sandbox().prepare(
        "{% for a in range(9000) %}{% for b in range(80) %}{% endfor %}{% endfor %}"
    )
    assert render({}) == render({}) == ""


def test_long_conversations_are_no_runaway() -> None:
    source = (
        "{% for m in messages %}{{ '<' + m.role ~ '>' + m.content | trim ~ '\\n' }}{% endfor %}"
    )
    messages = [{"role": "user", "content": "word " * 1000}] * 500
    assert len(rendered(source, messages=messages)) > 2_000_000


def test_json_is_written_as_models_were_trained_on_it() -> None:
    assert rendered("{{ x | tojson }}", x={"a": "<é'>"}) == '{"a": "<é\'>"}'


def test_marks_for_training_and_loop_controls_are_understood() -> None:
    source = "{% generation %}a{% endgeneration %}{% for i in range(9) %}{% break %}{% endfor %}b"
    assert rendered(source) == "ab"


def test_joining_with_a_tilde_keeps_its_meaning() -> None:
    assert rendered("{{ 'a' ~ 1 ~ none ~ ['b'] }}") == "a1None['b']"
