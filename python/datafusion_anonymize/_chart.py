"""Charts, drawn by the native part: SVG, shown inline in notebooks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from . import _native

#: Named lines of (x, y).
Series = Mapping[str, Sequence[tuple[float, float]]]


class Chart:
    """One picture or several below each other."""

    def __init__(self, pictures: Sequence[str]) -> None:
        #: The pictures as SVG.
        self.svg = tuple(pictures)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an SVG file, or (several pictures, or a name that ends in .html) a page."""
        whole = len(self.svg) == 1 and not os.fspath(path).endswith((".html", ".htm"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg[0] if whole else f"<!DOCTYPE html><meta charset='utf-8'>{self._repr_html_()}")

    def _repr_html_(self) -> str:
        return "".join(f"<div>{picture}</div>" for picture in self.svg)

    def __repr__(self) -> str:
        return f"<Chart of {len(self.svg)} picture{'s' if len(self.svg) != 1 else ''}: save(path) writes it>"


def draw(title: str, x: str, y: str, series: Series, logarithmic: bool = False) -> str:
    """A picture of lines."""
    lines = [(name, [(float(a), float(b)) for a, b in points]) for name, points in series.items()]
    return _native.chart(title, x, y, lines, logarithmic)
