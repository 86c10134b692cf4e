import re

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._names import LONGEST_NAME, expose, exposed_name, prefixes_of

ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}")
SOME_NAMES = st.lists(
    st.text("ab_.é-", min_size=1, max_size=4) | st.text(min_size=1, max_size=80),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(servers=SOME_NAMES, tools=SOME_NAMES)
def test_names_are_plain_short_and_each_leads_to_one_tool(
    servers: list[str], tools: list[str]
) -> None:
    prefixes = list(prefixes_of(servers).values())

    exposed = expose(dict.fromkeys(prefixes, tools), taken=["retrieve_context"])

    assert all(ALLOWED.fullmatch(name) for name in exposed)
    assert "retrieve_context" not in exposed
    assert sorted(exposed.values()) == sorted((p, t) for p in prefixes for t in tools)


@given(servers=SOME_NAMES, tool=st.text(max_size=90), there=st.integers(1, 5))
def test_name_does_not_depend_on_which_tools_are_there(
    servers: list[str], tool: str, there: int
) -> None:
    prefixes = list(prefixes_of(servers).values())
    first = prefixes[0]

    alone = expose({first: [tool]} | dict.fromkeys(prefixes[1:], ()), ())
    among = expose({first: [tool]} | dict.fromkeys(prefixes[1:there], ("other tool",)), ())

    plain = exposed_name(first, tool, prefixes)
    assert plain in alone
    assert (first, tool) in among.values()


def test_order_of_servers_changes_no_name() -> None:
    tools = {"a": ["b_c", "d"], "a_b": ["c", "d"], "z": ["x" * 70]}

    forth = expose(tools, ())
    back = expose(dict(reversed(tools.items())), ())

    assert forth == back


def test_name_of_exactly_the_longest_length_stays() -> None:
    fits = "x" * (LONGEST_NAME - 2)

    assert exposed_name("a", fits, ["a"]) == f"a_{fits}"
    assert exposed_name("a", f"{fits}x", ["a"]) != f"a_{fits}x"
    assert len(exposed_name("a", f"{fits}x", ["a"])) == LONGEST_NAME


def test_tool_that_is_named_like_the_hash_of_another_takes_nothing_from_it() -> None:
    long = "x" * 80
    hashed = exposed_name("a", long, ["a"])
    rude = hashed.removeprefix("a_")

    exposed = expose({"a": [rude, long]}, ())

    assert sorted(exposed.values()) == [("a", rude), ("a", long)]
