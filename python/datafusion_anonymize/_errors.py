"""Exceptions and warnings of the package. Messages have names of columns, counts and limits, and no values of the data."""

from __future__ import annotations


class AnonymizeError(Exception):
    """Base of all errors of this package. By itself it says that something could not be read, or that memory ran out."""

    def __init__(self, message: str, *, function: str | None = None, argument: str | None = None) -> None:
        super().__init__(message)
        #: The function that was called; of publications ``publication``.
        self.function = function
        #: The argument or option that is wrong, if it is one.
        self.argument = argument


class Refused(AnonymizeError, ValueError):
    """Refuses the call, its arguments or its data. The same call fails again; the text says what would do."""


class Conflict(AnonymizeError):
    """Tells that another job has published in the meantime. Nothing was published; do the same again."""


class Breach(AnonymizeError):
    """Tells that a method's check of its own guarantee failed: a bug of datafusion-anonymize. No row has left it; please report it."""


class Notice(UserWarning):
    """Tells a fact of a call that succeeded: that a snapshot was published before, or that rows were withheld."""
