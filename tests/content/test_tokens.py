"""The estimate of tokens, held against a tokenizer on text made here."""

import base64
import json
import random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rs_bpe import bpe

from coatcheck.content._tokens import clip_tokens, estimate_tokens, first_within

DICE = random.Random(1421)

SAMPLES = {
    "english": "The server does not respond to requests, please try again after midnight. " * 40,
    "german": "Überprüfen Sie die Verbindung zur Datenbank für größere Änderungen am Server. " * 40,
    "french": "Une erreur de connexion à la base de données s'est produite hier à minuit. " * 40,
    "polish": "Wystąpił błąd połączenia z bazą danych, spróbuj ponownie później jutro. " * 40,
    "russian": "Сервер не отвечает на запросы, попробуйте повторить попытку позже. " * 40,
    "greek": "Ο διακομιστής δεν ανταποκρίνεται στα αιτήματα, δοκιμάστε ξανά αργότερα. " * 40,
    "arabic": "الخادم لا يستجيب للطلبات، يرجى المحاولة مرة أخرى لاحقًا. " * 40,
    "hebrew": "השרת אינו מגיב לבקשות, נסה שוב מאוחר יותר. " * 40,
    "chinese": "人工智能正在改变我们的生活方式,数据库连接超时,请稍后重试。" * 40,
    "japanese": "データベースに接続できませんでした。もう一度お試しください。" * 40,
    "korean": "데이터베이스 연결에 실패했습니다. 다시 시도해 주세요. " * 40,
    "emoji": "😀🎉👍🏽🚀❤️" * 100,
    "base64": base64.b64encode(DICE.randbytes(6_000)).decode(),
    "hex": DICE.randbytes(3_000).hex(),
    "digits": "".join(DICE.choice("0123456789") for _ in range(6_000)),
    "floats": json.dumps([DICE.random() for _ in range(500)], separators=(",", ":")),
    "short floats": ",".join(f"{DICE.random():.6f}" for _ in range(800)),
    "integers": json.dumps([DICE.randrange(10**6) for _ in range(800)]),
    "rows": json.dumps([{"id": at, "name": f"user{at}", "ok": at % 2 == 0} for at in range(200)]),
    "indented": json.dumps([{"id": at, "tags": ["a", "b"]} for at in range(200)], indent=2),
    "log": "\n".join(
        f"2026-11-30T10:{at % 60:02}:00.{at:03}Z INFO [billing] request id={DICE.getrandbits(64):x}"
        f" user={DICE.randrange(10**5)} dur={DICE.random() * 999:.3f}ms status=200"
        for at in range(200)
    ),
    "csv": "\n".join(f"{at},Paris,{DICE.randrange(999)},{DICE.random():.3f}" for at in range(400)),
    "html": '<div class="row"><a href="https://example.com/x?y=1&z=2">link</a></div>\n' * 60,
    "colour": "\x1b[31mFAIL\x1b[0m ok\n" * 300,
    "capitals": "ERROR CONNECTION REFUSED BY REMOTE HOST TIMEOUT EXCEEDED " * 40,
    "names": "getUserAccountByIdentifier connection_timeout_ms max_retries " * 40,
    "boxes": "│ name │ value │\n├──────┼───────┤\n" * 40,
    "nul": "W\0s\0l\0" * 500,
}


def tokens_of(text: str) -> int:
    return cast("int", bpe.openai.o200k_base().count(text))


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_estimate_is_within_a_third_of_the_tokenizer(kind: str) -> None:
    text = SAMPLES[kind]

    ratio = estimate_tokens(text) / tokens_of(text)

    assert 0.8 <= ratio <= 1.34


def test_chinese_is_not_counted_as_four_characters_a_token() -> None:
    assert 60 <= estimate_tokens("你好世界" * 25) <= 200


def test_nothing_is_no_token_and_anything_is_one() -> None:
    assert estimate_tokens("") == 0
    assert all(estimate_tokens(text) >= 1 for text in (" ", "a", "\n", "-", "\ud83d", "\0", "é"))


def test_a_long_run_of_random_letters_is_not_taken_for_one_word() -> None:
    text = "".join(DICE.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(3_000))

    assert estimate_tokens(text) >= 0.7 * tokens_of(text)


TEXTS = st.text(st.sampled_from("aB0 .-\n漢é😀\ud83d"), max_size=3_000)


@given(text=TEXTS, budget=st.integers(0, 1_500))
def test_a_clipped_text_is_within_the_budget(text: str, budget: int) -> None:
    length = clip_tokens(text, budget)

    assert min(1, len(text)) <= length <= len(text)
    assert length <= 1 or estimate_tokens(text[:length]) <= budget


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_clipped_text_leaves_little_of_the_budget(kind: str) -> None:
    text = SAMPLES[kind] * 3
    budget = estimate_tokens(text) // 2

    assert estimate_tokens(text[: clip_tokens(text, budget)]) >= 0.95 * budget


def test_a_text_within_the_budget_is_not_clipped() -> None:
    text = SAMPLES["english"]

    assert clip_tokens(text, estimate_tokens(text) + 5) == len(text)


def test_reading_on_gets_on_whatever_the_budget() -> None:
    assert clip_tokens("漢字", 0) == 1
    assert clip_tokens("", 0) == 0


def test_the_first_text_within_the_budget_is_taken() -> None:
    assert first_within(["a long text of words", "a text", "a"], 3) == "a text"
    assert first_within(["a long text of words"], 2) is None
