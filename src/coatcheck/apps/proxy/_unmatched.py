"""Settings for tools that there are not: told once, as nothing else says that they are idle."""

from difflib import get_close_matches

from ...errors import shown
from ._channel import Log
from ._settings import Settings


class Unmatched:
    r"""The tools of the settings that no server has listed yet.

    >>> from ._settings import parse_settings
    >>> unmatched = Unmatched(parse_settings("[tools.raed_query]\ninline_bytes = 0"))
    >>> unmatched.listed("db", "read_query")
    >>> unmatched.tell(print)  # doctest: +ELLIPSIS
    coatcheck proxy: the settings name a tool 'raed_query', which no server lists. Did you ...
    >>> unmatched.tell(print)
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names: set[str] = set(settings.tools)
        self._listed: set[str] = set()

    def listed(self, upstream: str, tool: str, listed_as: str | None = None) -> None:
        """Take note of a tool that a server lists, and of its name as a host sees it."""
        if self._names:
            self._names = {
                name
                for name in self._names
                if not self._settings.is_for(name, upstream, tool, listed_as)
            }
            self._listed.add(tool)

    def tell(self, log: Log) -> None:
        """Tell of those that are left, now that all servers have listed their tools."""
        for name in sorted(self._names):
            nearest = get_close_matches(name, self._listed, n=1)
            hint = f" Did you mean {shown(nearest[0])}?" if nearest else ""
            idle = f"the settings name a tool {shown(name)}, which no server lists."
            log(f"coatcheck proxy: {idle}{hint}")
        self._names, self._listed = set[str](), set[str]()
