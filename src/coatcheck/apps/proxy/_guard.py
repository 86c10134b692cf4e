"""What ends the servers where the proxy is killed, and can do nothing any more."""

import asyncio
import os
from asyncio.subprocess import Process
from typing import IO

from ._lines import LineWriter, write_lines

_SHELL = "/bin/sh"
# It hears of each server's group; its input ends with the proxy, however that ends.
_SCRIPT = """
groups=
while read -r line; do
  case $line in
    -*) kept=
        for each in $groups; do [ "-$each" = "$line" ] || kept="$kept $each"; done
        groups=$kept ;;
    *) groups="$groups $line" ;;
  esac
done
[ -z "$groups" ] && exit 0
for each in $groups; do kill -s TERM -- "-$each"; done
sleep 1
for each in $groups; do kill -s KILL -- "-$each"; done
"""


class Guard:
    """A shell that outlives the proxy by a moment, and ends what it left behind."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._writer: LineWriter | None = None

    async def start(self) -> None:
        """Begin to watch; where there is no shell, servers are left to end with their input."""
        reading, writing = os.pipe()
        file: IO[bytes] = os.fdopen(writing, "wb", 0)
        try:
            self._process = await asyncio.create_subprocess_exec(
                _SHELL,
                "-c",
                _SCRIPT,
                stdin=reading,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            file.close()
            return
        finally:
            os.close(reading)
        self._writer = await write_lines(file)

    def add(self, group: int) -> None:
        """Watch over a process group."""
        self._tell(f"{group}\n")

    def remove(self, group: int) -> None:
        """Forget a process group, which is gone."""
        self._tell(f"-{group}\n")

    async def close(self) -> None:
        """Stop to watch."""
        if self._writer is not None and self._process is not None:
            self._writer.close()
            await self._process.wait()
            await self._writer.is_lost.wait()

    def _tell(self, line: str) -> None:
        if self._writer is not None and not self._writer.is_lost.is_set():
            self._writer.write(line.encode())
