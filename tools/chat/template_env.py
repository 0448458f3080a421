"""Chat templates rendered by Python's jinja2 with the settings of transformers' apply_chat_template."""

import datetime
import functools
import json

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = 1700000000  # what strftime_now shows in every golden; 2023-11-14 22:13:20 UTC


class Generation(jinja2.ext.Extension):
    """`{% generation %}`: marks text of the model and adds nothing to the output."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def strftime_now(form):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(form)


def environment(mutable=False):
    """`mutable` allows list.append and list.pop, which one template of Kimi-K2 uses."""
    kind = jinja2.sandbox.SandboxedEnvironment if mutable else jinja2.sandbox.ImmutableSandboxedEnvironment
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def environment_of_64_bits():
    """An environment where an integer beyond 64 bits is an error, as in the interpreter."""
    env = environment()

    def checked(value):
        if isinstance(value, int) and not -2**63 <= value < 2**63:
            raise OverflowError(value)
        return value

    env.intercepted_binops = frozenset(["+", "-", "*", "//", "%", "**"])
    env.call_binop = lambda context, op, left, right: checked(env.binop_table[op](left, right))
    for name in ("sum", "round", "int", "abs", "max", "min"):
        env.filters[name] = _checked_filter(env.filters[name], checked)
    return env


def _checked_filter(filter, checked):
    @functools.wraps(filter)  # keeps the mark that asks for the environment
    def same(*args, **named):
        return checked(filter(*args, **named))

    return same


def render(source, variables, mutable=False):
    """The text, or None where jinja2 raises."""
    try:
        return environment(mutable).from_string(source).render(**variables)
    except Exception:
        return None
