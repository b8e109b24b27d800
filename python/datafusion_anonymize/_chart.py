"""Charts, drawn by the native part: SVG, shown inline in notebooks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from . import _native
from ._errors import Refused
from ._types import Place

#: Named lines of (x, y).
Series = Mapping[str, Sequence[tuple[float, float]]]


class Chart:
    """Holds one picture or several."""

    def __init__(self, pictures: Sequence[str]) -> None:
        #: The pictures as SVG.
        self.svg = tuple(pictures)

    def save(self, path: Place) -> None:
        """Writes an SVG file, of several pictures one below the other, or, if the name ends in .html, a page."""
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending in (".html", ".htm"):
            text = f"<!DOCTYPE html><meta charset='utf-8'>{self._repr_html_()}"
        elif ending == ".svg":
            text = self.svg[0] if len(self.svg) == 1 else _stacked(self.svg)
        else:
            raise Refused(
                f"a chart is written as SVG or as a page, not as {ending or 'a file without an ending'}: save('chart.svg') or save('chart.html'); "
                "programs such as rsvg-convert make a picture of pixels of the former"
            )
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_html_(self) -> str:
        return "".join(f"<div>{picture}</div>" for picture in self.svg)

    def __repr__(self) -> str:
        return f"<Chart of {len(self.svg)} picture{'s' if len(self.svg) != 1 else ''}: save(path) writes it>"


def _stacked(pictures: Sequence[str]) -> str:
    """Makes one picture of several, one below the other."""
    placed, width, height = [], 0, 0
    for picture in pictures:
        size = re.search(r'<svg [^>]*?width="(\d+)" height="(\d+)"', picture)
        if size is None:
            raise Refused("the pictures cannot be put together; save('chart.html') writes a page")
        placed.append(picture.replace("<svg ", f'<svg y="{height}" ', 1))
        width, height = max(width, int(size[1])), height + int(size[2])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return f"{head}\n{''.join(placed)}</svg>\n"


def draw(title: str, x: str, y: str, series: Series, logarithmic: bool = False) -> str:
    """Draws lines."""
    lines = [(name, [(float(a), float(b)) for a, b in points]) for name, points in series.items()]
    return _native.chart(title, x, y, lines, logarithmic)
