"""Small templates that cover the language, with their variables; the goldens are the output of jinja2."""

VARIABLES = {
    "s": "Hello World",
    "u": "naïve 日本語 😀",
    "pad": " \t x y \n",
    "empty": "",
    "n": 7,
    "neg": -3,
    "f": 2.5,
    "yes": True,
    "no": False,
    "nil": None,
    "xs": [3, 1, 2],
    "words": ["b", "a", "c"],
    "mixed": [1, "two", 3.0, None, True, [4], {"k": "v"}],
    "d": {"b": 1, "a": {"x": [10, 20]}, "items": "mine", "t": "it's \"q\" \\ \n"},
    "rows": [{"n": "one", "v": 1, "ok": True}, {"n": "two", "v": 2}, {"n": "three", "v": 3, "ok": False}],
    "messages": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U1"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
    ],
}

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7 / 2
6 / 3
7.5 // 2
-7.5 % 2
2 * 1.5
1e3
1e16
1.5e-7
0.1 + 0.2
1 - 1.0
-n
+neg
- 3 | abs
-3 | abs
true + 1
'a' + 'b'
'a' ~ 1 ~ none ~ true ~ 1.0
1 ~ 2 + 3
'ab' * 3
3 * 'ab'
'ab' * -1
[1] * 3
[1, 2] + [3]
(1, 2) + (3,)
'x' 'y' "z"
'\n\t\\\'\"\x41\u00e9\q' | tojson
"a'b"
1 < 2
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
'a' < 'b'
'é' > 'z'
'a' == 'a' != 'b'
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1}
none == none
missing == none
missing == other
'ell' in s
'zzz' in s
'zzz' not in s
1 in xs
9 not in xs
'b' in d
'x' in d.a
'x' in missing
not yes
not not no
yes and 0
no or 'dflt'
nil or empty or 'last'
yes and no or 'x'
'a' if yes else 'b'
'a' if no else 'b'
'a' if no
'a' if no else 'b' if no else 'c'
(1,)
()
(1, 'a')
1, 2
[]
{}
{'a': 1, 'b': [true, none]}
[1, 'it\'s', "q\"", 'both \' "', none, 2.0]
mixed
d
u
[u]
['\x00\x7f\u200b\n']
xs[0]
xs[-1]
xs[9]
xs[9] is defined
xs[1:]
xs[:-1]
xs[::-1]
xs[::2]
xs[5:]
xs[-100:100]
xs[2:0:-1]
s[0]
s[-1]
s[1:4]
s[::-1]
u[6:9]
u[-1]
u[::-1]
u[::2]
s[100:]
(1,2,3)[1:]
d.b
d['b']
d.a.x[1]
d['a']['x'][0]
d.items is defined
d['items']
d.zzz
d.zzz is defined
d.a.zzz is none
d.get('b')
d.get('zz')
d.get('zz', 'dflt')
d.get('zz') is none
d.keys() | list
d.values() | list | length
d.a.items() | list
d.a | items | list
missing
missing is defined
missing is undefined
missing | length
missing | default('x')
missing | default
empty | default('x')
empty | default('x', true)
nil | default('x')
nil | d('x', boolean=true)
s is string
n is string
d is mapping
xs is mapping
xs is iterable
s is iterable
n is iterable
s is sequence
d is sequence
yes is true
n is true
no is false
nil is none
n is not none
yes is boolean
n is number
yes is number
f is float
n is integer
yes is integer
n is odd
n is even
n is divisibleby 7
n is divisibleby(3)
n is eq 7
n is ne(7)
n is gt 3
n is le 3
'a' is in ['a', 'b']
s is defined and n is defined
s is not defined or n > 3
s.split()
s.split(' ')
s.split('o')
s.split('o', 1)
s.split('o', 1)[1]
s.split('o')[-1]
'a,b,,c'.split(',')
',a'.split(',')
''.split(',')
''.split()
'  a  b '.split()
'  a  b '.split(None, 1)
'a b c'.rsplit(' ', 1)
'a--b--c'.rsplit('--', 1)[0]
pad.strip() | tojson
pad.lstrip() | tojson
pad.rstrip() | tojson
pad | trim | tojson
'xxaxx'.strip('x')
'xyaxy'.lstrip('xy')
'xyaxy'.rstrip('yx')
'éaé'.strip('é')
'\u3000a\u00a0'.strip()
'\n\n a'.lstrip('\n')
s.startswith('Hell')
s.startswith('x')
s.startswith(('x', 'H'))
s.endswith('World')
s.replace('o', '0')
s.replace('o', '0', 1)
s.replace('', '-')
s.replace('l', '')
s | replace('l', 'L')
s | replace('l', 'L', 1)
s.upper()
s.lower()
'hello wORLD it\'s 3x'.title()
'hello WORLD'.capitalize()
s | upper
s | lower
'hELLO' | capitalize
s.find('W')
s.find('z')
u.find('本')
'a\nb\r\nc'.splitlines()
'{} and {}'.format(1, 'x')
'{1}{0}{{}}'.format('a', 'b')
'{k}!'.format(k='v')
s | length
u | length
xs | length
d | length
xs | count
xs | first
xs | last
s | first
u | last
[] | first
[] | first is defined
xs | join
xs | join(', ')
words | join('-')
s | join('.')
rows | join(',', attribute='n')
mixed | join('|')
'12' | int
'12.7' | int
'x' | int
'x' | int(5)
'x' | int(default=6)
3.9 | int
-3.9 | int
nil | int
' 42 ' | int
'1.5' | float
'x' | float
3 | float
5 | string
none | string
[1, 'a'] | string
s | list
d | list
xs | list
words | reverse | list
rows | map(attribute='n') | list
rows | map(attribute='ok', default='?') | list
words | map('upper') | list
words | map('replace', 'a', 'z') | list
rows | map(attribute='n') | map('length') | list
rows | selectattr('ok') | list | length
rows | selectattr('ok', 'defined') | map(attribute='v') | list
rows | selectattr('v', 'equalto', 2) | map(attribute='n') | join
rows | selectattr('v', 'gt', 1) | map(attribute='n') | join(' ')
rows | rejectattr('v', 'eq', 2) | map(attribute='n') | join(' ')
[0, 1, '', 'a'] | select | list
[0, 1, '', 'a'] | reject | list
[1, 2, 3] | select('odd') | list
[1, 'a'] | select('string') | list
xs | tojson
d | tojson
d | tojson(indent=2)
mixed | tojson(indent=1)
[] | tojson(indent=2)
{} | tojson(indent=4)
[[], {}, [[]]] | tojson(indent=2)
d | tojson(separators=(',', ':'))
d | tojson(sort_keys=true)
u | tojson
u | tojson(ensure_ascii=true)
'\x00\x1f\x7f\u2028</script>&\'' | tojson
[1.0, 1e100, 1e-7, -0.0, 123456789012345680.0] | tojson
none | tojson
true | tojson
xs | tojson | length
d | string | length
range(3) | list
range(1, 4) | list
range(5, 0, -2) | list
range(0) | list
range(3)[1]
d | dictsort
{'b': 1, 'A': 2, 'c': 3} | dictsort
{'b': 1, 'A': 2} | dictsort(true)
{'b': 1, 'A': 2} | dictsort(reverse=true)
nil | map('upper') | list
nil | selectattr('x') | list
s | safe
dict(a=1, b='x') | tojson
namespace(a=1).a
namespace({'q': 2}).q
namespace({1: 2, 'q': 3}).q
strftime_now('%Y-%m-%d %H:%M')
strftime_now('%d %b %Y')
messages[0]['role'] == 'system'
messages[0].role
messages[-1].tool_calls[0].function.name
messages[1:] | map(attribute='role') | list
messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first
messages[2]['content'] is none
messages[2].content is not none
messages[1].tool_calls is defined
messages[1].get('tool_calls')
messages | length - 1
(messages | length) - 1
'<tool>' + (messages[0] | tojson) + '</tool>'
s.__class__
s.__class__.__mro__
d.__init__
xs.append(1)
missing.attr
missing + 'a'
'a' + 1
1 + none
nil.attr
nil.attr.b
xs.foo()
missing()
1 // 0
n < 'a'
'a' * 'b'
1 in 2
none | length
raise_exception('stop')
range(1000000) | length
2 ** 3 ** 2
-2 ** 2
2 * 3 ** 2
2 ** -1 | abs
0 ** 0
0 ** -1
0x1f + 0o17 + 0b11 + 1_000
messages.0.role
rows[1].n.0
{1: 'a', 2: 'b'}[2]
{1: 'a'}[1.0]
{true: 'a'}[1]
{none: 1, 1.5: 2}
{1: 'a', '1': 'b'} | tojson
{2: 'x', 1: 'y'} | tojson(sort_keys=true)
{2: 'x', 1: 'y'} | dictsort
1 in {1: 2}
'1' in {1: 2}
{1: 'a'}.get(2, 'no')
missing | int
missing | round
'%s' % xs
'%s %s' % (s, n)
'%(a)s' % {'a': 1}
'%5d|%-5d|%05d|%+d' % (7, 7, 7, 7)
'%.2f %e %g %x %o' % (2.345, 12345.678, 0.0001, 255, 8)
'%%' % ()
'%d' % 'a'
'%s' % ()
'{:>6}|{:<6}|{:^6}|'.format('ab', 'cd', 'ef')
'{:,} {:.1f} {:05d} {:x}'.format(1234567, 2.25, 42, 255)
'{0.x}'.format(d.a) if no else '{0[b]}'.format(d)
'{!r}'.format('a')
u | upper
u | lower
'ß' | upper
'ŉ' | capitalize
'ΟΔΟΣ ΟΔΟΣ' | lower
'ǆ'.title()
'ΔΣ日 ΔΣ ΑΔΣ' | title
'ΔΣ日 ΔΣ ΑΔΣ'.title()
'ΔΣ日 ΔΣ' | capitalize
'it\'s a-b (c) d' | title
'it\'s a-b (c) d'.title()
'a\n\nb\n' | indent
'a\n\nb\n' | indent(2, true, true) | tojson
5 | indent
s | truncate(8)
s | truncate(5, true, '', 0)
s | truncate(2)
s | center(20) | tojson
'ab'.center(5, '*')
'%s and %s' | format('a', 'b')
xs | sort
xs | sort(reverse=true)
words | sort | first
['b', 'A', 'c'] | sort
['b', 'A', 'c'] | sort(case_sensitive=true)
rows | sort(attribute='v', reverse=true) | map(attribute='n') | list
mixed | sort
nil | sort
xs | sum
rows | sum(attribute='v')
rows | sum(attribute='v', start=10)
words | sum
xs | min ~ xs | max
[] | max is defined
rows | max(attribute='v')
['a', 'A', 'b'] | unique | list
['a', 'A', 'b'] | unique(true) | list
[1, 1.0, true, '1'] | unique | list
[[1], [1]] | unique | list
rows | groupby('ok', default=false) | list
rows | groupby('v') | map(attribute='grouper') | list
range(7) | batch(3) | list
range(7) | batch(3, 'x') | list
range(7) | slice(3) | list
range(7) | slice(3, 'x') | list
d | dictsort(by='value')
{'b': 1, 'A': 0} | dictsort(by='value')
2.5 | round
3.5 | round
42.55 | round(1, 'floor')
42.55 | round(1, 'ceil')
1234 | round(-2)
1250 | round(-2)
-7 // 2.0
7 % -2.5
9007199254740993 / 3
9007199254740993 == 9007199254740992.0
[1, 2] < [1, 3]
(1, 'b') > (1, 'a')
[1, 'a'] < [1, 2]
s is upper
'A1' is upper
'lower' is filter
'nope' is filter
'in' is test
1 is sameas 1
rows | selectattr('v', '==', 2) | map(attribute='n') | first
rows | selectattr('v', '>=', 2) | list | length
s.rfind('o') ~ s.count('o') ~ s.index('o')
s.index('zz')
s.find('o', 5)
s.partition(' ')
s.rpartition('o')
s.partition('zz')
s.removeprefix('Hel') ~ s.removesuffix('ld')
', '.join(words)
', '.join(xs)
'7'.zfill(3) ~ '-7'.zfill(4) ~ 'a'.ljust(3, '.') ~ 'a'.rjust(3, '.')
'12'.isdigit() ~ 'a1'.isalnum() ~ 'a1'.isalpha() ~ ' '.isspace() ~ 'aB'.islower()
xs.index(2) ~ xs.count(3)
dict(d, z=1).z
dict([('a', 1), ('b', 2)])
s | reverse
s | attr('upper') is defined
d | attr('b') is defined
'<b>' | e
'<b>' | safe | e
'<b>' | safe ~ '<i>'
('<b>' | safe if yes else 'x')
'<' ~ '&' | escape
'<b>' | forceescape
'1_000' | int ~ '0x1f' | int(base=16) ~ '12.9' | int
'inf' | float
-0.0 | abs
7 / -2
0 / -5
""".strip("\n").split("\n")

SNIPPETS = [
    "plain text\n",
    "two\n\n",
    "a{# comment #}b",
    "a\n{# comment #}\nb",
    "a {#- c -#} b",
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc",
    "a\n  {%+ if yes %}\n  b\n  {%+ endif +%}\nc",
    "a  {%- if yes -%}  b  {%- endif -%}  c",
    "  {{ n }}  ",
    "  {{- n -}}  ",
    "x {{- n }} y {{ n -}} z",
    "{{-1}}|{{ -1 }}|{{+1}}",
    "\n\n  {{- n }}\n",
    "{% if yes %}\nA\n{% else %}\nB\n{% endif %}\n",
    "{% if no %}A{% elif n == 7 %}B{% elif yes %}C{% else %}D{% endif %}",
    "{% if no %}A{% elif no %}B{% else %}D{% endif %}",
    "{%if yes%}tight{%endif%}",
    "  {% if yes %}a{% endif %}  {% if yes %}b{% endif %}",
    "{% for x in xs %}{{ x }},{% endfor %}",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }};{% endfor %}",
    "{% for x in xs %}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }};{% endfor %}",
    "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}",
    "{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}",
    "{% for x in xs if x > 9 %}a{% else %}none{% endfor %}",
    "{% for x in missing %}a{% else %}none{% endfor %}",
    "{% for c in 'héy' %}[{{ c }}]{% endfor %}",
    "{% for k in d %}{{ k }} {% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d | items %}{{ k }}{{ loop.last }};{% endfor %}",
    "{% for (a, b) in [(1, 2), [3, 4]] %}{{ a + b }};{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{{ x }}{{ y }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{% break %}{% endfor %}{{ x }}{% endfor %}",
    "{% for i in range(3) %}{{ i }}{% endfor %}",
    "{% for x in xs %}{% set last = x %}{% endfor %}{{ last is defined }}",
    "{% set a = 1 %}{% for x in xs %}{{ a }}{% set a = x %}{{ a }};{% endfor %}{{ a }}",
    "{% set ns = namespace(v=0) %}{% for x in xs %}{% set ns.v = ns.v + x %}{% endfor %}{{ ns.v }}",
    "{% set ns = namespace() %}{% set ns.a = 'x' %}{{ ns.a }}{{ ns.b is defined }}",
    "{% set ns = namespace(a=1) %}{% set alias = ns %}{% set alias.a = 5 %}{{ ns.a }}",
    "{% if no %}{% set q = 1 %}{% endif %}{{ q is defined }}",
    "{% if yes %}{% set q = 1 %}{% endif %}{{ q }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set t = 1, 2 %}{{ t }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]",
    "{% set x %}\n  multi\n  line\n{% endset %}[{{ x | trim }}]",
    "{% set n = 3 %}{{ n }}",
    "{% set s = s ~ '!' %}{{ s }}",
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ add_generation_prompt }}",
    "{% macro m(a, b=2) %}<{{ a }}-{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}",
    "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}[{{ m('x') }}][{{ m('y') | upper }}]",
    "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}",
    "{% macro m() %}{{ late }}{% endmacro %}{% set late = 2 %}{{ m() }}",
    "{% macro fact(k) %}{{ 1 if k < 2 else k * (fact(k - 1) | int) }}{% endmacro %}{{ fact(5) }}",
    "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y is defined }}",
    "{% macro m(x) %}{% for i in range(x) %}{{ i }}{% endfor %}{% endmacro %}{% for z in xs %}{{ m(z) }};{% endfor %}",
    "{% macro m(xs) %}{{ xs }}{% endmacro %}{{ m(1) }}{{ xs }}",
    "{{ '}}' }}{{ '{{' }}{{ \"%}\" }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}",
    "{{ {'a': {'b': 1}} }}",
    "{ {{ n }} } {% if yes %}{ % }{% endif %}",
    "a\r\nb\rc{{ n }}\r\n",
    "{{ 'multi\nline' }}",
    "{{ n }}\n{{ n }}\n\n",
    "{% if yes %}\n\n  x\n{% endif %}\n\ny",
    "{%- for m in messages -%}\n  {{ m.role }}:\n  {{- m.content }}\n{% endfor -%}\n end",
    "{% for m in messages %}{% if m['role'] == 'user' and not loop.first %}{{ m['content'] | trim }}{% endif %}{% endfor %}",
    "{% set loop_messages = messages[1:] if messages[0]['role'] == 'system' else messages %}{{ loop_messages | length }}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}x{% else %}y{% endif %}{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.role }}{% set i = (messages | length - 1) - loop.index0 %}{{ i }} {% endfor %}",
    "{% for m in messages %}{% if m.role == 'tool' and (loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool') %}T{% endif %}{% endfor %}!",
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
    "{% generation %}{{ n }}{% endgeneration %}",
    "{% for x in xs %}{% generation %}{{ x }}{% endgeneration %}{% endfor %}",
    "{% if yes %}\n  {% if yes %}\n  b\n  {% endif %}\n{% endif %}\n",
    "{{ n }}  {% if yes %}a{% endif %}",
    "{{ n -}}\n  {% if yes %}a{% endif %}",
    "{# c #}\n  {% if yes %}a{% endif %}",
    "{%- if yes %} \t{% if yes %}a{% endif %}  {# d #}{% endif %}",
    "{% raw %}{{ n }}{% if %}{% endraw %}",
    "a {%- raw -%}  {{ n }}  {%- endraw -%} b",
    "{% raw %}\n{{ x }}\n{% endraw %}\nafter",
    "x\n  {% raw %}  {{ x }}\n  {% endraw %}  y",
    "{%+ raw %}a{%+ endraw +%}\nb",
    "{% raw %}{% raw %}{% endraw %}",
    "{% raw %}a",
    "{% endraw %}",
    "{% filter upper %}a{{ n }}b{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}banana{% endfilter %}",
    "{% filter trim -%}\n  {{ s }}\n{%- endfilter %}|",
    "{% filter upper %}{% set q = 1 %}{% endfilter %}{{ q is defined }}",
    "{% set q | upper %}a{{ n }}{% endset %}{{ q }}",
    "{% set q | replace('a', 'b') | upper %}banana{% endset %}{{ q }}",
    "{% set q %}{% set r = 1 %}{% endset %}{{ r is defined }}",
    "{% set ns = namespace() %}{% set ns.q %}a{{ n }}{% endset %}{{ ns.q }}",
    "{% generation %}{% set r = 1 %}{% endgeneration %}{{ r is defined }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% for x in xs %}{% with y = x %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endwith %}{% endfor %}",
    "{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call m('b') %}x{{ n }}{% endcall %}",
    "{% macro m(l) %}{% for x in l %}{{ caller(x) }};{% endfor %}{% endmacro %}{% call(y) m(xs) %}[{{ y }}]{% endcall %}",
    "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(a, b=2) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% for x in xs %}{% macro m(y) %}{{ x }}{{ y }}{% endmacro %}{{ m('!') }}{% endfor %}",
    "{% macro a(x) %}{% macro b(y) %}{{ x }}{{ y }}{% endmacro %}{{ b(2) }}{{ b(3) }}{% endmacro %}{{ a(1) }}",
    "{% for x in xs %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% macro m(l) %}{{ l.index }}/{{ l.length }}{% endmacro %}{% for x in xs %}{{ m(loop) }} {% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2, 1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in xs | sort %}{{ x }}{% endfor %}",
    "{% for k, v in {2: 'b', 1: 'a'} | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for k in {1: 'a', 'b': 2} %}{{ k }}{% endfor %}",
    "{% for g in rows | groupby('v') %}{{ g.grouper }}:{{ g.list | length }}{% endfor %}",
    "{% for g, items in rows | groupby('n') %}{{ g }}{{ items | length }}{% endfor %}",
    "{% for row in range(5) | batch(2, '') %}{{ row | join(',') }};{% endfor %}",
    "{% call m() %}{% endcall %}",
    "{% call n %}{% endcall %}",
    "{% filter %}{% endfilter %}",
    "{% with a %}{% endwith %}",
    "{{ n }",
    "{% if yes %}",
    "{% endif %}",
    "{% for x xs %}{% endfor %}",
    "{% for x in xs %}",
    "{{ 1 + }}",
    "{{ (1 }}",
    "{{ ) }}",
    "{{ [1, 2 }}",
    "{{ 'open }}",
    "{# open",
    "{{ a b }}",
    "{{ x | }}",
    "{{ x | nofilter }}",
    "{{ x is notest }}",
    "{{ m(a=1, 2) }}",
    "{% unknown %}",
    "{% set %}",
    "{% set 1 = 2 %}",
    "{% set xs.a = 2 %}",
    "{{ f(1) }}",
    "{% else %}",
    "{{ 1 ? 2 }}",
    "{% break %}",
]

# Allowed only where lists can be changed.
MUTABLE = [
    "{% set q = ['b'] %}{% set _ = q.append('a') %}{{ q }}{{ q.pop(0) }}{{ q }}{{ q.pop() }}{{ q }}",
    "{% set ns = namespace(ids=[]) %}{% for x in xs %}{% set _ = ns.ids.append(x ~ '!') %}{% endfor %}{{ ns.ids | join }}",
    "{% set q = [1, 2] %}{% set p = q %}{% set _ = p.append(3) %}{{ q }}",
    "{% set q = [1, 2] %}{% for x in q %}{% if x < 9 and q | length < 5 %}{{ x }}{% endif %}{% endfor %}",
    "{% set q = [] %}{% for m in messages %}{% set _ = q.append(m) %}{% endfor %}{{ q | length }}{{ q[0].role }}",
    "{% set q = [] %}{% set _ = q.append({'a': [1]}) %}{% set _ = q.append([2]) %}{% set _ = q.append((3,)) %}{{ q }}",
    "{% set q = [] %}{% for x in [1, 2] %}{% set p = [x] %}{% set _ = q.append(p) %}{% endfor %}{{ q }}",
    "{{ [].pop() }}",
    "{{ [1].pop(3) }}",
]

ALL = ["{{ " + e + " }}" for e in EXPRESSIONS] + SNIPPETS
