"""One line of progress, in a terminal or in a notebook."""
from __future__ import annotations

import sys
import time
from typing import Any, Optional

SILENT_SECONDS = 0.5  # nothing is shown for what takes less
SECONDS_BETWEEN = 0.1


def in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell else None
    return type(found).__name__ == "ZMQInteractiveShell"


class Progress:
    """shown=None: where a person looks, which is a notebook or a terminal."""

    def __init__(self, what: str, shown: Optional[bool] = None) -> None:
        self._what, self._begun, self._last = what, time.monotonic(), 0.0
        self._shown = (in_notebook() or sys.stderr.isatty()) if shown is None else shown
        self._display: Any = None
        self._line = ""

    def show(self, done: int, total: int, detail: str = "") -> None:
        now = time.monotonic()
        if not self._shown or now - self._begun < SILENT_SECONDS or (now - self._last < SECONDS_BETWEEN and done < total):
            return
        self._last = now
        text = f"{self._what}: {done}/{total} {detail}".rstrip()
        if in_notebook():
            self._show_in_notebook(text, done, total)
        else:
            filled = 30 * done // max(total, 1)
            self._write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {text}")

    def _show_in_notebook(self, text: str, done: int, total: int) -> None:
        from html import escape

        from IPython.display import HTML, display  # type: ignore[import-not-found]
        html = HTML(f'<progress value="{done}" max="{max(total, 1)}"></progress> {escape(text)}')
        if self._display is None:
            self._display = display(html, display_id=True)
        else:
            self._display.update(html)

    def _write(self, line: str) -> None:
        sys.stderr.write(line + " " * max(0, len(self._line) - len(line)))
        sys.stderr.flush()
        self._line = line

    def end(self) -> None:
        if self._line:
            sys.stderr.write("\n")
            self._line = ""
