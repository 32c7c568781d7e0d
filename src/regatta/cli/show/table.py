"""Tables as kubectl prints them: columns of text, three spaces apart, no lines."""

from __future__ import annotations

from collections.abc import Sequence

from regatta.cli.show.ansi import Paint, Painted

Cell = str | Painted
GAP = "   "


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    paint: Paint,
    *,
    indent: str = "",
    widths: Sequence[int] = (),
) -> list[str]:
    """Lines without trailing blanks. `widths` are the least a column gets."""
    columns = list(zip(*([headers] if headers else []), *rows, strict=True))
    least = [*widths, *([0] * (len(columns) - len(widths)))]
    wide = [
        max(least[number], *(len(_text(cell)) for cell in column))
        for number, column in enumerate(columns)
    ]
    lines = [_line(headers, wide, paint)] if headers else []
    lines += [_line(row, wide, paint) for row in rows]
    return [f"{indent}{line}".rstrip() for line in lines]


def column_widths(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[int]:
    return [max(map(len, map(_text, column))) for column in zip(headers, *rows, strict=True)]


def _line(row: Sequence[Cell], wide: Sequence[int], paint: Paint) -> str:
    parts = []
    for cell, width in zip(row, wide, strict=True):
        text = _text(cell)
        shown = paint(text, cell.colour) if isinstance(cell, Painted) else text
        parts.append(shown + " " * (width - len(text)))
    return GAP.join(parts).rstrip()


def _text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Painted) else cell
