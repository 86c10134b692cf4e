"""A bar for work on many artifacts, while someone looks."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def artifacts_progress() -> Generator[Callable[[int, int], object]]:
    """Give what shows how many of how many artifacts are done, for the time of a `with`."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("artifacts"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
