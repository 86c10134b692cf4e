"""What is said to a Redis server: commands and scripts of version 6.2, and no later one."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

Command: TypeAlias = tuple[str | bytes | memoryview | int, ...]


class Answer(Enum):
    """Answers that are no errors to us."""

    WRONG_TYPE = 0
    """The key holds something of another type than the command is for."""


WRONG_TYPE: Final = Answer.WRONG_TYPE

_ENTER = """
for number, folder in ipairs(KEYS) do
  local lives = ARGV[2 * number]
  redis.call('ZADD', folder, 0, ARGV[2 * number - 1])
  if redis.call('PTTL', folder) < tonumber(lives) then redis.call('PEXPIRE', folder, lives) end
end
"""
_UNLINK = """
for part = 0, (head[2] or 0) - 1 do
  redis.call('UNLINK', name .. '#' .. head[1] .. '#' .. part)
end
redis.call('UNLINK', name)
"""
_FORGET = f"""
for number, name in ipairs(KEYS) do
  local head = {{}}
  if redis.call('TYPE', name).ok == 'hash' then
    head = redis.call('HMGET', name, 'token', 'count')
  end
  if not head[1] or head[1] ~= ARGV[number] then
    {_UNLINK}
  end
end
"""
_DELETE = (
    _FORGET
    + """
for at = #KEYS + 1, #ARGV, 2 do redis.call('ZREM', ARGV[at], ARGV[at + 1]) end
"""
)
_DELETE_UNCHANGED = (
    """
local name, payload, at = KEYS[1], ARGV[1], 1
local head = {}
if redis.call('TYPE', name).ok == 'hash' then
  head = redis.call('HMGET', name, 'token', 'count')
  for part = 0, (head[2] or 0) - 1 do
    local piece = redis.call('GET', name .. '#' .. head[1] .. '#' .. part) or ''
    if piece ~= string.sub(payload, at, at + #piece - 1) then return 1 end
    at = at + #piece
  end
  if at ~= #payload + 1 then return 1 end
else
  local standing = redis.call('GET', name)
  if not standing then return 0 end
  if standing ~= payload then return 1 end
end
"""
    + _UNLINK
    + """
redis.call('ZREM', ARGV[2], ARGV[3])
return 0
"""
)
_LIVE = """
for number, name in ipairs(KEYS) do
  local lives = ARGV[number + 1]
  local left = redis.call('PTTL', name)
  if left ~= -2 and (ARGV[1] == 'from now' or left < tonumber(lives)) then
    redis.call('PEXPIRE', name, lives)
    if redis.call('TYPE', name).ok == 'hash' then
      local head = redis.call('HMGET', name, 'token', 'count')
      for part = 0, (head[2] or 0) - 1 do
        redis.call('PEXPIRE', name .. '#' .. head[1] .. '#' .. part, lives)
      end
    end
  end
end
"""
_LIST = """
local members = redis.call('ZRANGE', KEYS[1], ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])
local living = {}
for _, member in ipairs(members) do
  if redis.call('EXISTS', ARGV[3] .. member) == 1 then
    table.insert(living, member)
  else
    redis.call('ZREM', KEYS[1], member)
  end
end
return {members[#members] or '', living}
"""


def enter(entries: Iterable[tuple[str, str, int]]) -> list[Command]:
    """Return what makes keys listed: of each the folder, the last segment, and its time in ms.

    A folder lives as long as the longest of what was entered. Redis 6.2 cannot say that of a key
    without a script, and to ask for its time first would be a race.
    """
    all_entries = list(entries)
    if not all_entries:
        return []
    lives = [each for _, member, ms in all_entries for each in (member, ms)]
    return [("EVAL", _ENTER, len(all_entries), *(folder for folder, _, _ in all_entries), *lives)]


def forget(names: Mapping[str, str]) -> list[Command]:
    """Return what removes whatever is under each name, but for parts with the token given.

    In the transaction that writes the name, so that who knows of parts finds either all of them,
    which are what is stored, or none. When that is sent twice, its own parts stay.
    """
    if not names:
        return []
    return [("EVAL", _FORGET, len(names), *names, *names.values())]


def delete(names: Sequence[str], entries: Iterable[tuple[str, str, int]]) -> Command:
    """Return what removes names with their parts, and takes them out of their folders.

    No transaction: of a server without memory left, even one that frees some is refused.
    """
    listed = [each for folder, member, _ in entries for each in (folder, member)]
    return ("EVAL", _DELETE, len(names), *names, *("" for _ in names), *listed)


def delete_unchanged(name: str, payload: bytes, folder: str, member: str) -> Command:
    """Return what removes a name that holds `payload`, and answers 1 where it holds another."""
    return ("EVAL", _DELETE_UNCHANGED, 1, name, payload, folder, member)


def live(names: Mapping[str, int], *, at_least: bool = False) -> list[Command]:
    """Return what gives each name, with all its parts, its time in ms.

    Args:
        names: Each with its time. Those that are missing stay missing.
        at_least: Whether one that has longer keeps that.
    """
    if not names:
        return []
    how = "at least" if at_least else "from now"
    return [("EVAL", _LIVE, len(names), *names, how, *names.values())]


def list_page(folder: str, after: str, count: int) -> Command:
    """Return what lists up to `count` living keys of a folder, and takes dead ones out of it.

    The answer is the last one looked at, empty at the end, and those that live: last segments.
    """
    start = f"({after}" if after else "-"
    return ("EVAL", _LIST, 1, folder, start, count, folder)


def transaction(*commands: Command) -> list[Command]:
    """Return the commands as one that is done whole, or not at all."""
    return [("MULTI",), *commands, ("EXEC",)]
