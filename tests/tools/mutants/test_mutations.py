"""Which mistakes `make mutants` can think of."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from tools.mutants.mutations import mutants_of


def changed(source: str) -> list[str]:
    """The source with each of its mutants, as one line each."""
    made = []
    for number in range(len(mutants_of(Path("m.py"), dedent(source))[1])):
        tree, mutants = mutants_of(Path("m.py"), dedent(source))
        mutants[number].apply()
        made.append("; ".join(line.strip() for line in ast.unparse(tree).splitlines() if line))
    return made


EXPRESSIONS = {
    "a bound": ("a < 1", ["a <= 1", "a >= 1", "a < 2"]),
    "an equality": ("a == b", ["a != b"]),
    "an identity": ("a is None", ["a is not None"]),
    "a membership": ("a in b", ["a not in b"]),
    "both": ("a and b", ["a or b", "b and b", "a and a"]),
    "a negation": ("not a", ["a"]),
    "a sum": ("a + b", ["a", "b", "a - b"]),
    "a choice": ("a if b else c", ["a if True else c", "a if False else c"]),
    "a filter": ("[x for x in a if x]", ["[x for x in a if True]", "[x for x in a if False]"]),
    "a part of a tuple": ("(a, *b)", ["(*b,)", "(a,)"]),
    "an entry of a table": ("{a: b, **c}", ["{**c}", "{a: b}"]),
    "a named argument": ("f(a, b=c)", ["f(a)"]),
    "the least": ("min(a)", ["max(a)"]),
    "an order": ("sorted(a, key=b)", ["list(a)", "sorted(a)"]),
    "a word for a program": ("'Failed'", ["'Failed-mutant'"]),
    "a name that is put together": ("f'{a}-env'", ["f'{a}-env-mutant'"]),
    "words for people": ("'it has failed'", []),
    "a number in words for people": ("f'after {a} s: {b + 1}'", None),
    "a yes": ("True", ["False"]),
}


@pytest.mark.parametrize(("expression", "mutants"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_is_made_wrong(expression: str, mutants: list[str] | None) -> None:
    if mutants is None:
        mutants = [f"f'after {{a}} s: {{{wrong}}}'" for wrong in ("b", "1", "b - 1", "b + 2")]
    assert changed(f"x = {expression}") == [f"x = {mutant}" for mutant in mutants]


def test_statements_are_made_to_do_nothing_and_conditions_to_hold_always_or_never() -> None:
    source = """
        def f(a, b):
            if a:
                b.go()
            b[0] = a
    """
    assert changed(source) == [
        "def f(a, b):; if True:; b.go(); b[0] = a",
        "def f(a, b):; if False:; b.go(); b[0] = a",
        "def f(a, b):; if a:; pass; b[0] = a",
        "def f(a, b):; if a:; b.go(); pass",
        "def f(a, b):; if a:; b.go(); b[1] = a",
    ]


def test_what_decides_nothing_is_left_alone() -> None:
    source = '''
        """Why this is here."""
        from a import b
        __all__ = ["b"]
        class C:
            """What it is."""
            x: dict[str, int]
            @d("name")
            def f(self) -> tuple[int, str]:
                assert self
                ...
    '''
    assert changed(source) == []


def test_a_mutant_knows_its_function_and_the_lines_of_its_statement() -> None:
    source = dedent("""
        class C:
            y = 1
            def f(self):
                return g(
                    1,
                )
    """)
    default, returned = mutants_of(Path("m.py"), source)[1]

    assert (default.function, default.change) == ("", "1 → 2")
    assert (returned.function, returned.line, returned.lines) == ("C.f", 6, (5, 7))
