"""What the package raises. Messages have names of columns, counts and limits, and no values of the data."""

from __future__ import annotations


class AnonymizeError(Exception):
    """The base of all errors of this package; by itself what is no other: something that could not be read, memory that ran out."""

    def __init__(self, message: str, *, function: str | None = None, argument: str | None = None) -> None:
        super().__init__(message)
        #: The SQL function that was called; of publications ``publication``.
        self.function = function
        #: The argument or option that is wrong, if it is one.
        self.argument = argument


class Refused(AnonymizeError):
    """The call, the data or the parameters do not allow a safe result. The same call fails again; the text says what would do."""


class Conflict(AnonymizeError):
    """Somebody else has published in the meantime. Nothing was published; do the same again."""


class Breach(AnonymizeError):
    """A method's check of its own guarantee failed: a bug of datafusion-anonymize. No row has left it; please report it."""


class Notice(UserWarning):
    """What is worth knowing of something that succeeded: that a snapshot was published before, or that rows were withheld."""
