"""Answers that are errors: which codes a broker may give to which request, and how an answer with one looks.

Owns the tables. It decides nothing about when.
"""

from collections.abc import Callable
from typing import Any

RETRIABLE: dict[int, tuple[int, ...]] = {
    0: (3, 6, 7, 19, 56),
    1: (3, 6, 9, 56),
    2: (3, 6, 9),
    3: (),
    8: (14, 15, 16),
    9: (14, 15, 16, 88),
    10: (15,),
    11: (14, 15, 16),
    12: (15, 16),
    13: (15,),
    14: (15, 16, 27),
    22: (14, 15, 16, 51),
    24: (14, 15, 16, 51),
    25: (14, 15, 16, 51),
    26: (14, 15, 16, 51),
    28: (14, 15, 16, 3),
}
"""Codes that a pause cures, by request."""

FINAL: dict[int, tuple[int, ...]] = {
    0: (47, 48, 45, 59, 87, 90, 10, 18, 29),
    1: (2, 13),
    2: (56, 35),
    8: (22, 25, 27, 12, 28),
    9: (30, 35),
    10: (30, 53),
    11: (25, 24, 23, 30),
    12: (22, 25, 27, 30),
    13: (25,),
    14: (22, 25, 30),
    22: (47, 49, 53, 90),
    24: (47, 48, 49, 53, 90, 29),
    25: (47, 48, 49, 53, 90, 30),
    26: (47, 48, 49, 53, 90),
    28: (47, 48, 49, 53, 22, 25, 12, 28, 30, 90),
}
"""Codes that end something: a transaction, a membership, a producer, or a right that is missing."""

DONE_ALL_THE_SAME: dict[int, tuple[int, ...]] = {0: (7, 20), 28: (7,), 8: (7,), 26: (14, 16), 25: (16,), 24: (16,)}
"""Codes that a broker may give although the request was carried out."""


def refuse(request: Any, code: int) -> Any:
    """The answer to a request with this error code."""
    return _ANSWERS[request.API_KEY](request, code)


def _by_partition(request: Any, entry: Callable[[int], tuple[Any, ...]]) -> list[Any]:
    return [(topic, [entry(one if isinstance(one, int) else one[0]) for one in some]) for topic, some, *_ in request.topics]


def _offset_fetch(request: Any, code: int) -> Any:
    if request.API_VERSION < 7:
        return request.RESPONSE_TYPE(0, _by_partition(request, lambda number: (number, -1, "", code)), 0)
    if code != 88:
        return request.RESPONSE_TYPE(0, [], code, {})
    topics = _by_partition(request, lambda number: (number, -1, -1, "", code, {}))
    return request.RESPONSE_TYPE(0, [(*topic, {}) for topic in topics], 0, {})


_ANSWERS: dict[int, Callable[[Any, int], Any]] = {
    0: lambda r, code: r.RESPONSE_TYPE(_by_partition(r, lambda number: (number, code, -1, -1, -1)), 0),
    1: lambda r, code: r.RESPONSE_TYPE(0, 0, 0, _by_partition(r, lambda number: (number, code, -1, -1, -1, [], -1, b""))),
    2: lambda r, code: r.RESPONSE_TYPE(0, _by_partition(r, lambda number: (number, code, -1, -1))),
    8: lambda r, code: r.RESPONSE_TYPE(0, _by_partition(r, lambda number: (number, code))),
    9: _offset_fetch,
    10: lambda r, code: r.RESPONSE_TYPE(0, code, "", -1, "", -1),
    11: lambda r, code: r.RESPONSE_TYPE(0, code, -1, "", "", r.member_id, []),
    12: lambda r, code: r.RESPONSE_TYPE(0, code),
    13: lambda r, code: r.RESPONSE_TYPE(0, code),
    14: lambda r, code: r.RESPONSE_TYPE(0, code, b""),
    22: lambda r, code: r.RESPONSE_TYPE(0, code, -1, -1),
    24: lambda r, code: r.RESPONSE_TYPE(0, _by_partition(r, lambda number: (number, code))),
    25: lambda r, code: r.RESPONSE_TYPE(0, code),
    26: lambda r, code: r.RESPONSE_TYPE(0, code),
    28: lambda r, code: r.RESPONSE_TYPE(0, _by_partition(r, lambda number: (number, code))),
}
