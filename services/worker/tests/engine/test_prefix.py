from backtalk_worker.engine.domain.prefix import PrefixMemory, common_length


def test_common_length_counts_equal_ids_from_the_start():
    a = list(range(1000))
    assert common_length(a, [*a[:500], -1, *a[501:]]) == 500
    assert common_length(a, a) == 1000
    assert common_length([], a) == 0
    assert common_length([5], [6]) == 0


def test_the_longest_shared_beginning_is_found_within_its_namespace_only():
    memory: PrefixMemory[str] = PrefixMemory(100)
    memory.put("x", [1, 2, 3], "short")
    memory.put("x", [9, 1, 2, 3, 4, 5], "other")
    memory.put("y", [1, 2, 3, 4], "foreign")
    assert memory.best("x", [1, 2, 7]) == (2, "short")
    assert memory.best("z", [1, 2, 3]) is None


def test_the_least_recently_used_goes_first_and_the_bound_holds():
    memory: PrefixMemory[str] = PrefixMemory(6)
    memory.put("x", [1, 1, 1], "a")
    memory.put("x", [2, 2, 2], "b")
    memory.best("x", [1, 1])
    memory.put("x", [3, 3, 3], "c")
    assert memory.best("x", [2, 2]) is None
    assert memory.best("x", [1, 1]) == (2, "a")
    assert memory.tokens == 6


def test_a_newer_entry_that_serves_the_same_beginnings_replaces_the_older():
    memory: PrefixMemory[str] = PrefixMemory(100)
    memory.put("x", [*range(40), 100], "older")
    memory.put("x", [*range(40), 200], "newer")
    assert memory.tokens == 41
    assert memory.best("x", [*range(40), 100]) == (40, "newer")


def test_an_entry_larger_than_the_memory_is_not_kept():
    memory: PrefixMemory[str] = PrefixMemory(3)
    memory.put("x", [1, 2, 3, 4], "a")
    assert memory.tokens == 0


def test_forgetting_a_namespace_frees_its_tokens():
    memory: PrefixMemory[str] = PrefixMemory(100)
    memory.put(("a", ""), [1, 2], "a")
    memory.put(("b", ""), [1, 2, 3], "b")
    memory.forget(lambda namespace: namespace == ("a", ""))
    assert memory.tokens == 3
