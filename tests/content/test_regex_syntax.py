"""Patterns: which are refused, with which reason, and what those that are not stand for."""

import pytest

from coatcheck.content._regex_sets import write_hex
from coatcheck.content._regex_syntax import parse_regex
from coatcheck.content._regex_tree import write
from coatcheck.errors import InvalidArgumentError

EDGES = {edge: edge for edge in "^$bB"}


def written(pattern: str, *, ignore_case: bool = False) -> str:
    node = parse_regex(pattern, ignore_case=ignore_case)
    return write(node, lambda chars: chars.write(write_hex), EDGES)


@pytest.mark.parametrize(
    ("pattern", "what", "at"),
    [
        ("x(?=a)", "a lookahead", 2),
        ("(?!a)x", "a lookahead", 1),
        ("(?<=a)x", "a lookbehind", 1),
        ("(?<!a)x", "a lookbehind", 1),
        (r"(a)\1", "a backreference", 4),
        (r"(?P<a>a)(?P=a)", "a backreference", 9),
        (r"a\k<a>", "a backreference", 2),
        (r"\g<1>", "a backreference", 1),
        ("(?>a)", "an atomic group", 1),
        ("a++", "a possessive repeat", 2),
        ("a{2}+", "a possessive repeat", 2),
        ("(?R)", "a recursion", 1),
        ("(?P>a)", "a recursion", 1),
        ("(a)(?(1)b)", "a condition", 4),
        ("(?#a)b", "a comment", 1),
        ("(?|a)", "a branch reset", 1),
        ("(?s).", "the flag s", 1),
        ("(?s:.)", "the flag s", 1),
        (r"\Aa", "an anchor to the whole text", 1),
        (r"a\z", "an anchor to the whole text", 2),
        (r"a\Z", "an anchor to the whole text", 2),
        (r"a\nb", "a line break", 2),
        ("a\nb", "a line break", 2),
        (r"a\x0ab", "a line break", 2),
        (r"\R", "a line break", 1),
        (r"\Qa", "a quotation", 1),
        (r"\0", "an octal escape", 1),
        (r"\N{DASH}", "a character's name", 1),
        ("[[:alpha:]]", "a POSIX class", 2),
        (r"\p{Greek}", "that property", 1),
        (r"\p", "that property", 1),
        (r"\h", r"the escape \h", 1),
        (r"[\y]", r"the escape \y", 2),
    ],
)
def test_what_not_all_engines_have_is_refused_by_its_name(pattern: str, what: str, at: int) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        parse_regex(pattern, ignore_case=True)

    assert f"has {what} at character {at}, which is not supported here." in str(refused.value)
    assert refused.value.hint
    assert refused.value.code == "invalid-argument"


@pytest.mark.parametrize(
    ("pattern", "what", "at"),
    [
        ("(a", "a ( that is not closed", 1),
        ("a)", "a ) that closes no group", 2),
        ("[a", "a [ that is not closed", 1),
        ("[]", "a [ that is not closed", 1),
        ("[^]", "a [ that is not closed", 1),
        ("[b-a]", "a range that does not ascend", 1),
        (r"[a-\d]", "a range that does not ascend", 1),
        (r"[\b]", "a word border in a class", 2),
        ("*a", "a repeat of nothing", 1),
        ("a|{2}", "a repeat of nothing", 3),
        ("^*a", "a repeat of nothing", 2),
        (r"\b+a", "a repeat of nothing", 3),
        ("a**", "a repeat of a repeat", 2),
        ("a{2}{3}", "a repeat of a repeat", 2),
        ("a???", "a repeat of a repeat", 2),
        ("(a*)*b", "a repeat of what needs no character", 5),
        ("(a|b?)+c", "a repeat of what needs no character", 7),
        (r"(\b){2}c", "a repeat of what needs no character", 5),
        ("a{5,2}", "a repeat that ends before it starts", 2),
        ("a\\", "a backslash at its end", 2),
        (r"\x4", "a character's number that is none", 1),
        (r"\x{110000}", "a character's number that is none", 1),
        (r"\x{}", "a character's number that is none", 1),
        (r"\uD8", "a character's number that is none", 1),
        (r"\x{41", "a { that is not closed", 1),
        (r"\p{L", "a { that is not closed", 1),
        ("(?P<1>a)", "a group without a name", 1),
        ("(?<a", "a group without a name", 1),
        ("(?z)a", "an unknown group or flag", 1),
        ("(?x)a", "an unknown group or flag", 1),
        ("(?i", "an unknown group or flag", 1),
        ("(?--i)a", "an unknown group or flag", 1),
        ("(" * 51 + "a" + ")" * 51, "more than 50 groups within each other", 51),
    ],
)
def test_a_mistake_is_named_with_its_place(pattern: str, what: str, at: int) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        parse_regex(pattern, ignore_case=True)

    assert f"has {what} at character {at}." in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    "pattern",
    ["a*", "a?|b", "()", "(|a)", "^", "$", "^$", r"\b", "a{0}", "a{0,5}", "(a*)?", "^a*$"],
)
def test_what_needs_no_character_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match="needs no character") as refused:
        parse_regex(pattern, ignore_case=True)

    assert "+ in place of *" in refused.value.hint


@pytest.mark.parametrize(
    "pattern", ["a{1001}", "(a{10}){101}", "(a{500}b{500})c", "(a{9}){99999999}"]
)
def test_what_is_over_a_thousand_characters_with_its_repeats_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match="1,000 at most"):
        parse_regex(pattern, ignore_case=True)


@pytest.mark.parametrize(
    "pattern", ["a{1000}", "(a{10}){100}", "a{1000,}", "(" * 50 + "a" + ")" * 50]
)
def test_what_is_at_a_bound_is_not_refused(pattern: str) -> None:
    assert written(pattern)


@pytest.mark.parametrize(
    ("pattern", "as_written"),
    [
        ("ab|c", "(?:ab|c)"),
        ("(a)(?:b)(?P<n>c)(?<m>d)", "abcd"),
        ("a.b", r"a[^\x{a}]b"),
        ("a+b*?c?d{2}e{,3}f{4,}", "a{1,}b{0,}?c{0,1}d{2,2}e{0,3}f{4,}"),
        ("(ab)+(^a)*", "(?:ab){1,}(?:^a){0,}"),
        ("a{x}{1,2,3}{", r"a\x{7b}x\x{7d}\x{7b}1\x{2c}2\x{2c}3\x{7d}\x{7b}"),
        (r"\.\/\_\-é\é", r"\x{2e}\x{2f}_\x{2d}\x{e9}\x{e9}"),
        (r"\t\r\f\v\a", r"\x{9}\x{d}\x{c}\x{b}\x{7}"),
        (r"\x41\u00e9\U0001F600\x{1f600}", r"A\x{e9}\x{1f600}\x{1f600}"),
        (r"\d\D", r"[\p{Nd}][^\x{a}\p{Nd}]"),
        (r"\w\W", r"[_\p{L}\p{M}\p{N}][^_\x{a}\p{L}\p{M}\p{N}]"),
        (r"\pL\PN\p{^Lu}", r"[\p{L}][^\x{a}\p{N}][^\x{a}\p{Lu}]"),
        (r"\p{Cc}", r"[\x{0}-\x{9}\x{b}-\x{1f}\x{7f}-\x{9f}]"),
        ("[a-c]", "[a-c]"),
        ("[^a-c]", r"[^a-c\x{a}]"),
        ("[]a][^]a]", r"[\x{5d}a][^\x{5d}a\x{a}]"),
        ("[a-]", r"[\x{2d}a]"),
        (r"[\w-.]", r"[\x{2d}-\x{2e}_\p{L}\p{M}\p{N}]"),
        (r"[\W\d]", r"(?:[\p{Nd}]|[^_\x{a}\p{L}\p{M}\p{N}])"),
        (r"[^\n\r]", r"[^\x{d}\x{a}]"),
        (r"[\n\t]", r"\x{9}"),
        (r"[\n]x", r"[^\x{0}-\x{10ffff}]x"),
        (
            r"[^\S\r]",
            (
                r"[\x{9}\x{b}-\x{c}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
                r"\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000}]"
            ),
        ),
        ("[&&[a]", r"[\x{26}\x{5b}a]"),
        ("(?m)^a$(?m:b)", "^a$b"),
        ("(?i)k(?-i:k)k", r"[Kk\x{212a}]k[Kk\x{212a}]"),
        ("(a(?i)b|c)d", "(?:a[Bb]|[Cc])d"),
        ("(?i)é[а-б]", r"[\x{c9}\x{e9}][\x{410}-\x{411}\x{430}-\x{431}]"),
        (r"(?i)\p{Lu}[^a]", r"[\p{Ll}\p{Lt}\p{Lu}][^Aa\x{a}]"),
        ("(?:)+a", "a"),
        ("(a*)?(b?){1}c", "(?:a{0,}){0,1}(?:b{0,1}){1,1}c"),
    ],
)
def test_a_pattern_is_read_as(pattern: str, as_written: str) -> None:
    assert written(pattern) == as_written


def test_case_is_ignored_from_the_start_where_that_is_asked_for() -> None:
    assert written("a(?-i)a", ignore_case=True) == "[Aa]a"
