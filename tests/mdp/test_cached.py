"""Results are cached inside a problem, and nothing keeps an unused problem alive."""

from __future__ import annotations

import gc
import pickle
import weakref

import steadytd as st
from steadytd.mdp.cached import cached


class Thing:
    pass


def test_results_are_computed_once_and_the_oldest_go_first() -> None:
    calls: list[int] = []

    @cached(2)
    def double(thing: Thing, number: int = 0) -> int:
        calls.append(number)
        return 2 * number

    one, other = Thing(), Thing()
    assert [double(one, 1), double(one, 1), double(other, 1), double(one, 2)] == [2, 2, 2, 4]
    assert calls == [1, 1, 2]
    double(one, 3)  # 1 goes
    double(one, 2)
    assert calls == [1, 1, 2, 3]
    double(one, number=1)
    assert calls == [1, 1, 2, 3, 1]


def test_an_argument_counts_the_same_however_it_is_given() -> None:
    calls: list[tuple[int, int]] = []

    @cached(4)
    def product(thing: Thing, one: int, other: int = 2) -> int:
        calls.append((one, other))
        return one * other

    thing = Thing()
    same = [product(thing, 3), product(thing, 3, 2), product(thing, other=2, one=3)]
    assert same == [6, 6, 6]
    assert calls == [(3, 2)]


def test_a_copy_begins_with_an_empty_cache() -> None:
    problem = st.problem("three_state")
    st.certify(problem)
    held = [value for name, value in vars(problem).items() if name.startswith("steadytd.theory")]
    assert held
    assert all(held)
    copy = pickle.loads(pickle.dumps(problem))
    sent = [value for name, value in vars(copy).items() if name.startswith("steadytd.theory")]
    assert not any(sent)
    assert copy.v_pi.tobytes() == problem.v_pi.tobytes()


def test_a_certified_problem_goes_at_once() -> None:
    """Python's collector counts objects, not their megabytes: it would come after many of them."""
    certificate = st.certify("three_state")
    assert certificate.best_eta and certificate.at_alpha(1e-3).height
    gone = weakref.ref(certificate.problem)
    gc.disable()
    try:
        del certificate
        assert gone() is None
    finally:
        gc.enable()
