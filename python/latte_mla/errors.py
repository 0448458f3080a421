"""The one exception of the package."""
from __future__ import annotations

CODES = ("ok", "invalid_argument", "not_found", "unsupported", "corrupt", "exhausted", "cancelled",
         "unavailable", "internal")


class LatteError(Exception):
    """An error of the engine or of a request.

    `code` is one of "invalid_argument" (the request, option or call is wrong), "not_found" (the
    named file or model does not exist), "unsupported", "corrupt" (a file contradicts its format),
    "exhausted" (memory, pages or queue places ran out), "cancelled", "unavailable" and "internal"
    (a bug of Latte). `str(error)` says what was expected, what was found, and what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self):  # pickle calls the class with `args`, which lack the code
        return LatteError, (self.code, str(self))
