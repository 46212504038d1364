"""The short chaos run of CI, and proof that its instruments can see what they look for."""

import asyncio
import json
import random
import socket
import threading
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.__main__ import say
from tests.chaos.faults import FAULTS
from tests.chaos.proxy import Api, Proxy
from tests.chaos.run import ROLLING, chaos
from tests.chaos.verdict import compare
from tests.e2e.workload import Call

SHORT = {
    "member killed (SIGKILL)": 3,
    "member stopped past its session (zombie)": 1,
    "member joins": 1,
    "member leaves (SIGTERM)": 1,
    "broker killed in mid-transaction": 1,
    "connections cut": 1,
    "connections stalled": 1,
    "answer to a step of a transaction lost": 2,
}
"""What CI has time for; `make chaos` does all of it, and more."""


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 6: members, broker and connections fail while calls are undecided: nothing lost, nothing twice, nothing wrong."""
    monkeypatch.setenv("CALLGATE_TEST_PATIENCE", "150")
    result = chaos(tmp_path, 6, SHORT, say)
    say(report.render(result, "pytest", full=False))
    assert not report.failures(result, full=False), result.stuck
    assert result.counted > 0


def decision(call_id: str, reason: str = "ok", arguments: str | None = "{}", number: str = "") -> bytes:
    """Make a decision as it is published."""
    return json.dumps(
        {
            "stream": "s",
            "response_id": "r",
            "call_id": call_id,
            "reason": reason,
            "arguments": arguments,
            "id": number or call_id,
        }
    ).encode()


def test_the_verdict_sees_everything() -> None:
    """What is lost, twice or wrong is found, each by its name; what is right is not."""
    calls = {("s", "r", name): Call("ok", "{}") for name in ("a", "b", "c", "d", "e")}
    good = [decision(name) for name in "abcde"]
    assert compare(good, [b"x"], calls, [b"x"]).clean
    lost = compare(good[1:], [], calls, [b"x"])
    assert len(lost.lost) == 2
    assert not lost.clean
    twice = compare([*good, decision("a", number="other"), decision("f", number="b")], [b"x", b"x"], calls, [b"x"])
    assert len(twice.twice) == 3
    assert len(twice.wrong) == 1
    wrong = compare([*good[2:], decision("a", "timeout"), decision("b", arguments="{ }")], [], calls, [])
    assert len(wrong.wrong) == 2


def echo(listener: socket.socket) -> None:
    """Answer each connection with what it says, until the listener is closed."""
    while True:
        try:
            link, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_echo, args=(link,), daemon=True).start()


def _echo(link: socket.socket) -> None:
    with link:
        while True:
            try:
                said = link.recv(1 << 16)
            except OSError:
                return
            if not said:
                return
            # As Kafka answers: the size, then the correlation id first.
            frame = said[8:12]
            link.sendall(len(frame).to_bytes(4, "big") + frame)


def request(api: Api, correlation: int) -> bytes:
    """Make a frame with nothing but a header."""
    body = api.value.to_bytes(2, "big") + b"\0\0" + correlation.to_bytes(4, "big")
    return len(body).to_bytes(4, "big") + body


def test_the_proxy_does_what_it_is_told() -> None:
    """A trap holds one kind of answer and what is behind it, lets it pass when it is released, and loses it when it is cut."""
    with socket.create_server(("127.0.0.1", 0)) as listener, Proxy() as proxy:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        proxy.lead_to(f"127.0.0.1:{listener.getsockname()[1]}")

        async def talk() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(request(Api.HEARTBEAT, 1))
            assert await reader.readexactly(8) == b"\0\0\0\4\0\0\0\1"
            trap = proxy.trap(Api.END_TXN, answer=True)
            writer.write(request(Api.END_TXN, 2))
            assert await asyncio.to_thread(trap.wait, 30)
            trap.release()
            assert await reader.readexactly(8) == b"\0\0\0\4\0\0\0\2"
            trap = proxy.trap(Api.END_TXN, answer=True)
            writer.write(request(Api.END_TXN, 3))
            assert await asyncio.to_thread(trap.wait, 30)
            trap.cut()
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(8)
            writer.transport.abort()
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(request(Api.HEARTBEAT, 4))
            assert await reader.readexactly(8) == b"\0\0\0\4\0\0\0\4"
            assert proxy.cut(random.Random(1), 1.0) == 1
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(8)
            writer.transport.abort()

        asyncio.run(talk())


def test_the_short_plan_names_faults_that_there_are() -> None:
    """Every kind of the short run, and every one with a bound, is in the list of faults."""
    assert set(SHORT) <= set(FAULTS)
    assert set(report.BOUNDS) <= {*FAULTS, ROLLING}
