"""What fuzzing has found, as the shortest log that shows it."""

from typing import Any

import pytest

from processor.core.limits import Bounds
from tests.factories import Json, created, done, function_call, pieces, records, response, terminal
from tests.fuzz.drive import drive

CALL = function_call()


@pytest.mark.parametrize("kind", [[], {}, [None], 5, True, 1.5])
def test_terminal_entry_whose_type_is_no_text(kind: Any) -> None:
    """Design section 5, `namespaced`: a type that is no string never raises, in a terminal list as little as elsewhere."""
    entry: Json = {**CALL, "type": kind, "call_id": "call_2"}
    outcome = drive(records([created(), *pieces(0, CALL), terminal(output=[CALL, entry])]), Bounds())
    assert [body["call_id"] for _, body in outcome.approved] == ["call_1"]
    assert [(body["call_id"], body["reason"]) for body in outcome.rejected] == [("call_2", "namespaced")]
    outcome = drive(records([response("resp_1", "completed", output=[entry])]), Bounds())
    assert [(body["call_id"], body["reason"]) for body in outcome.rejected] == [("call_2", "namespaced")]


LEEDS = function_call("call_1")
BERGEN = function_call("call_2", arguments='{"city":"Bergen"}')
RENAMED = {**BERGEN, "call_id": "call_1"}


@pytest.mark.parametrize(
    ("streamed", "listed"),
    [
        ([BERGEN], [RENAMED, LEEDS]),
        ([BERGEN], [LEEDS, RENAMED]),
        ([{**LEEDS, "call_id": "call_3"}, BERGEN], [LEEDS, RENAMED]),
    ],
)
def test_renamed_calls_do_not_share_a_call_id(streamed: list[Json], listed: list[Json]) -> None:
    """Section 4 and rule 34, `call_id_renamed`: one call_id of a response is approved for one content only."""
    log = records([created(), *(done(index, item) for index, item in enumerate(streamed)), terminal(output=listed)])
    drive(log, Bounds(tolerate=("call_id_renamed",)))
