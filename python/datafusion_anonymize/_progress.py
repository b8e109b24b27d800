"""A line, or a bar in notebooks, while something takes long."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

Report = Callable[[str | None, float | None], None]

_wanted: bool | None = None


def set_progress(wanted: bool | None = None) -> None:
    """Shows progress (True), hides it (False), or shows it in terminals and notebooks only (None)."""
    global _wanted
    _wanted = wanted


@contextmanager
def watch(what: str) -> Iterator[Report | None]:
    """Yields a callback that shows how far ``what`` is, or None."""
    if not what or threading.current_thread() is not threading.main_thread():
        yield None
    elif _wanted is not False and _in_notebook():
        yield _Bar(what)
    elif _wanted or (_wanted is None and sys.stderr is not None and sys.stderr.isatty()):
        yield _Line(what)
    else:
        yield None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def _words(what: str, since: float, words: str | None) -> str:
    parts = [what, *([words] if words else []), f"{time.monotonic() - since:.0f} s"]
    return ": ".join(parts[:2]) + (f", {parts[2]}" if len(parts) > 2 else "")


class _Line:
    def __init__(self, what: str) -> None:
        self._what, self._since, self._shown = what, time.monotonic(), ""

    def __call__(self, words: str | None, share: float | None) -> None:
        line = "" if words is None else _words(self._what, self._since, words)
        if share is not None:
            done = round(20 * share)
            line = f"[{'#' * done}{'.' * (20 - done)}] {line}"
        if line != self._shown:
            self._shown = line
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()


class _Bar:
    def __init__(self, what: str) -> None:
        self._what, self._since, self._shown = what, time.monotonic(), ""
        self._handle: Any = None

    def __call__(self, words: str | None, share: float | None) -> None:
        shows: Any = import_module("IPython.display")
        if words is None:
            shown = ""
        else:
            value = "" if share is None else f' value="{share:.3f}"'
            shown = f"<progress{value}></progress> {html.escape(_words(self._what, self._since, words))}"
        if shown == self._shown:
            return
        self._shown = shown
        if self._handle is None:
            self._handle = shows.display(shows.HTML(shown), display_id=True)
        else:
            self._handle.update(shows.HTML(shown))
