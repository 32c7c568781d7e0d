"""What could be wrong in a file: every small change of it that a test ought to notice.

A mutant is one change: a condition that always or never holds, a bound moved by one, one part of a
tuple, a table or a call left out, a statement that does nothing, another word where a program
reads it. Constants, properties and the defaults of fields are code like the rest.

Not tried, because nothing decides by them: docstrings, annotations, imports and exports,
decorators, what is asserted for the type checker, and words for people. A string with a blank in
it is for people, and so are the fixed parts of an f-string that has one; what is computed inside
such an f-string is tried all the same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REMOVED = "(removed)"

#: The nearest wrong comparison, and the opposite one.
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}

#: Statements that may be left out; without an assignment to a name the rest would only crash.
_DROPPABLE = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True)
class Mutant:
    path: Path
    #: Where in the file: a function or `Class.method`; empty for code that runs at import.
    function: str
    before: str
    after: str
    line: int
    #: First and last line of the statement it stands in: a test that runs any may notice.
    lines: tuple[int, int]
    #: Makes the change in the tree that the mutants of a file share.
    apply: Callable[[], None]

    @property
    def change(self) -> str:
        return f"{self.before} → {self.after}"


@dataclass(frozen=True)
class _Spot:
    """Where a node hangs in its tree."""

    parent: ast.AST
    field: str
    index: int | None = None

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node

    def drop(self) -> None:
        assert self.index is not None
        del getattr(self.parent, self.field)[self.index]


def mutants_of(path: Path, source: str) -> tuple[ast.Module, list[Mutant]]:
    """The file's tree, and the changes that can be made to it, in the order of its lines."""
    tree = ast.parse(source)
    seeker = _Seeker(path)
    seeker.body(tree)
    return tree, seeker.found


class _Seeker:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Mutant] = []
        self.names: list[str] = []
        self.inside_function = False
        self.lines = (0, 0)

    # -- statements ------------------------------------------------------------------------

    def body(self, parent: ast.AST, field: str = "body") -> None:
        for index, statement in enumerate(getattr(parent, field)):
            self.statement(statement, _Spot(parent, field, index))

    def statement(self, node: ast.stmt, spot: _Spot) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert):
            return
        if _is_docstring(node) or _exports(node):
            return
        self.lines = (node.lineno, _header_end(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.definition(node)
        elif isinstance(node, ast.ClassDef):
            self.names.append(node.name)
            self.body(node)
            self.names.pop()
        else:
            if isinstance(node, _DROPPABLE) or _stores_into(node):
                self.add(node, REMOVED, lambda: spot.put(ast.copy_location(ast.Pass(), node)))
            if isinstance(node, ast.If | ast.While):
                self.condition(node.test, _Spot(node, "test"), loops=isinstance(node, ast.While))
            self.children(node)

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for field in ("defaults", "kw_defaults"):
            for index, default in enumerate(getattr(node.args, field)):
                if default is not None:
                    self.expression(default, _Spot(node.args, field, index))
        outer, self.inside_function = self.inside_function, True
        self.names.append(node.name)
        self.body(node)
        self.names.pop()
        self.inside_function = outer

    def children(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if isinstance(value, ast.expr):
                self.expression(value, _Spot(node, field))
            elif isinstance(value, ast.AST):
                self.children(value)
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.stmt):
                        self.statement(item, _Spot(node, field, index))
                    elif isinstance(item, ast.expr):
                        self.expression(item, _Spot(node, field, index))
                    elif isinstance(item, ast.AST):
                        self.children(item)

    # -- expressions -----------------------------------------------------------------------

    def expression(self, node: ast.expr, spot: _Spot) -> None:
        for after in _replacements(node):
            self.replace(node, after, spot)
        for name, part, change in _left_out(node):
            self.add(part, name, change)
        if isinstance(node, ast.IfExp):
            self.condition(node.test, _Spot(node, "test"))
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                for index, test in enumerate(generator.ifs):
                    self.condition(test, _Spot(generator, "ifs", index))
        if isinstance(node, ast.JoinedStr):
            self.words(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            self.expression(node.value, _Spot(node, "value"))
            if not isinstance(node.slice, ast.Tuple):  # `dict[str, int]` is a type
                self.expression(node.slice, _Spot(node, "slice"))
        else:
            self.children(node)

    def words(self, node: ast.JoinedStr) -> None:
        """An f-string: its fixed parts unless they are for people, its values in any case."""
        for_people = any(_has_blank(part) for part in node.values)
        for index, part in enumerate(node.values):
            if isinstance(part, ast.FormattedValue):
                self.expression(part.value, _Spot(part, "value"))
            elif not for_people:
                self.expression(part, _Spot(node, "values", index))

    def condition(self, test: ast.expr, spot: _Spot, loops: bool = False) -> None:
        """Always and never; a loop that never ends would only cost its time limit."""
        if not isinstance(test, ast.Constant):
            for value in (False,) if loops else (True, False):
                self.replace(test, ast.Constant(value), spot)

    # -- what was found --------------------------------------------------------------------

    def replace(self, node: ast.expr, after: ast.expr, spot: _Spot) -> None:
        ast.fix_missing_locations(ast.copy_location(after, node))
        self.add(node, ast.unparse(after), lambda: spot.put(after))

    def add(self, node: ast.AST, after: str, apply: Callable[[], None]) -> None:
        before = ast.unparse(node)
        if before == after:
            return
        line = getattr(node, "lineno", self.lines[0])
        function = ".".join(self.names) if self.inside_function else ""
        self.found.append(Mutant(self.path, function, before, after, line, self.lines, apply))


def _replacements(node: ast.expr) -> Iterator[ast.expr]:
    """Expressions that could stand here by mistake."""
    match node:
        case ast.Compare(ops=[operator, *_]):
            for other in _COMPARISONS[type(operator)]:
                yield _with(node, ops=[other(), *node.ops[1:]])
        case ast.BoolOp(op=operator):
            yield _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=operator, right=right):
            yield left
            yield right
            if type(operator) in _ARITHMETIC:
                yield _with(node, op=_ARITHMETIC[type(operator)]())
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if value and " " not in value:
            yield ast.Constant(value + "-mutant")
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            keywords = [] if name == "sorted" else node.keywords
            yield _with(node, func=ast.Name(_CALLS[name], ast.Load()), keywords=keywords)


def _left_out(node: ast.expr) -> Iterator[tuple[str, ast.AST, Callable[[], None]]]:
    """Parts that could be forgotten: of a tuple, a table, a condition, a call's named arguments."""
    match node:
        case ast.Tuple(elts=parts, ctx=ast.Load()) | ast.List(elts=parts, ctx=ast.Load()):
            for index, part in enumerate(parts):
                yield REMOVED, part, _Spot(node, "elts", index).drop
        case ast.Set(elts=parts) if len(parts) > 1:
            for index, part in enumerate(parts):
                yield REMOVED, part, _Spot(node, "elts", index).drop
        case ast.Dict(values=values):
            for index, value in enumerate(values):
                yield REMOVED, node.keys[index] or value, _both(node, index)
        case ast.BoolOp(values=parts):
            for index, part in enumerate(parts):
                yield REMOVED, part, _shorter(node, index)
        case ast.Call(keywords=keywords):
            for index, keyword in enumerate(keywords):
                yield REMOVED, keyword, _Spot(node, "keywords", index).drop


def _both(node: ast.Dict, index: int) -> Callable[[], None]:
    def drop() -> None:
        del node.keys[index], node.values[index]

    return drop


def _shorter(node: ast.BoolOp, index: int) -> Callable[[], None]:
    """`a and b` without one of the two; a single one left compiles as itself."""

    def drop() -> None:
        del node.values[index]
        if len(node.values) == 1:
            node.values.append(copy.deepcopy(node.values[0]))

    return drop


def _with(node: ast.expr, **changes: Any) -> ast.expr:
    other = copy.copy(node)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and (isinstance(node.value.value, str) or node.value.value is ...)
    )


def _exports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _stores_into(node: ast.stmt) -> bool:
    """An assignment to a part of something else, such as `data[key] = value`."""
    if not isinstance(node, ast.Assign):
        return False
    return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)


def _has_blank(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and " " in str(part.value)


def _header_end(node: ast.stmt) -> int:
    """The last line of a statement, or of what comes before its block."""
    block = getattr(node, "body", None) or getattr(node, "cases", None)
    if not block:
        return node.end_lineno or node.lineno
    first = block[0].lineno if isinstance(block[0], ast.stmt) else block[0].pattern.lineno
    return max(node.lineno, first - 1)
