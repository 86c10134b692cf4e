import sys
import threading

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.bank._cache import Cache


def test_the_least_recently_used_goes_first() -> None:
    cache = Cache(20)
    cache.put("a", "A", 10)
    cache.put("b", "B", 10)
    cache.get("a")
    cache.put("c", "C", 10)

    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("A", None, "C")


def test_what_fits_exactly_is_kept_and_one_byte_more_is_not() -> None:
    cache = Cache(20)
    cache.put("a", "A", 20)
    assert cache.get("a") == "A"

    cache.put("b", "B", 21)
    assert cache.get("b") is None
    assert cache.get("a") == "A"


def test_what_is_dropped_is_gone_and_frees_its_bytes() -> None:
    cache = Cache(20)
    cache.put("a", "A", 20)
    cache.drop("a")
    cache.drop("a")
    cache.put("b", "B", 20)

    assert (cache.get("a"), cache.get("b")) == (None, "B")


def test_threads_that_put_under_one_key_leave_no_bytes_behind() -> None:
    cache, started = Cache(1_000), threading.Barrier(5)

    def put() -> None:
        started.wait()
        for _ in range(2_000):
            cache.put("a", "A", 1)

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    interval = sys.getswitchinterval()
    started.wait()  # first, as what traces a thread is installed at its start
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    cache.put("b", "B", 999)

    assert (cache.get("a"), cache.get("b")) == ("A", "B")


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 30))))
def test_what_is_kept_never_exceeds_the_limit(puts: list[tuple[str, int]]) -> None:
    cache, sizes = Cache(40), dict[str, int]()
    for key, size in puts:
        cache.put(key, key, size)
        sizes[key] = size

    assert sum(size for key, size in sizes.items() if cache.get(key) is not None) <= 40
