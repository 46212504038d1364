"""The file contract of design section 10: what a line is, what is counted up, and that no byte changes."""

import base64
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from processor.adapters.archive import Archive, ArchivedRecord, ArchiveError


def read(tmp_path: Path, content: bytes, name: str = "chat-7.jsonl") -> list[ArchivedRecord]:
    """All records of one file."""
    path = tmp_path / name
    path.write_bytes(content)
    return list(Archive("in").read(str(path)))


def lines(*objects: Any) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


def test_kcat_line(tmp_path: Path) -> None:
    """A line of `kcat -J` gives every field of the record."""
    (record,) = read(
        tmp_path,
        lines({
            "topic": "t", "partition": 3, "offset": 17, "tstype": "create", "ts": 1_790_000_000_123, "broker": 1,
            "headers": ["traceparent", "00-a", "empty", None], "key": "k", "payload": "{}",
        }),
    )  # fmt: skip
    assert record == ArchivedRecord("t", 3, 17, 1_790_000_000_123, b"k", b"{}", (("traceparent", b"00-a"), ("empty", None)))


def test_missing_is_counted_up(tmp_path: Path) -> None:
    """Section 10: what is missing is counted up, by partition, from what stood there last."""
    records = read(
        tmp_path,
        lines(
            {"payload": "a"},
            {"payload": "b", "offset": 10, "ts": 500},
            {"payload": "c"},
            {"payload": "d", "partition": 1},
            {"payload": "e", "offset": 3, "ts": -1},
        ),
    )
    assert [(each.topic, each.partition, each.offset, each.timestamp) for each in records] == [
        ("in", 0, 0, 1),
        ("in", 0, 10, 500),
        ("in", 0, 11, 501),
        ("in", 1, 0, 1),
        ("in", 0, 12, 502),
    ]


def test_null_payload_and_key(tmp_path: Path) -> None:
    """A tombstone stays one: null is not the empty text."""
    one, two = read(tmp_path, lines({"key": None, "payload": None}, {"key": "", "payload": ""}))
    assert (one.key, one.value) == (None, None)
    assert (two.key, two.value) == (b"", b"")


def test_base64(tmp_path: Path) -> None:
    """Bytes that are no text come as base64, value and key."""
    coded = base64.b64encode(b"\xff\x00").decode()
    (record,) = read(tmp_path, lines({"payload_base64": coded, "key_base64": coded}))
    assert (record.key, record.value) == (b"\xff\x00", b"\xff\x00")


@pytest.mark.parametrize("bad", [{"payload_base64": "!"}, {"payload": "a", "key_base64": "x"}])
def test_broken_base64_is_not_guessed(tmp_path: Path, bad: dict[str, str]) -> None:
    """A line whose base64 is broken is itself the value, and will be a dead letter."""
    content = lines(bad)
    assert [each.value for each in read(tmp_path, content)] == [content.strip()]


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    """Escapes of lone surrogates inside the payload's own JSON arrive as they are."""
    payload = '{"delta":"\\ud83d"}'
    (record,) = read(tmp_path, lines({"payload": payload, "key": "k"}))
    assert record.value == payload.encode()


def test_lone_surrogate_in_the_line_itself(tmp_path: Path) -> None:
    """What has no UTF-8 arrives as bytes that are none: a dead letter, never a crash."""
    (record,) = read(tmp_path, b'{"key":"\\ud83d","payload":"x\\ud83d"}\n')
    assert record.value == b"x\xed\xa0\xbd"


def test_plain_events(tmp_path: Path) -> None:
    """Plain events take the file's name as their key; `[DONE]` and blank lines are no records."""
    content = b'{"type":"response.created"}\n\n[{"type":"error"}]\r\nnot json\n[DONE]\n'
    records = read(tmp_path, content, "chat-7.x.jsonl")
    assert [each.value for each in records] == [b'{"type":"response.created"}', b'[{"type":"error"}]', b"not json"]
    assert {each.key for each in records} == {b"chat-7"}
    assert [each.offset for each in records] == [0, 1, 2]


def test_raw_server_sent_events(tmp_path: Path) -> None:
    """A raw SSE file is one record a frame, its bytes as they were."""
    content = b': hello\n\nevent: a\ndata: {"type":\ndata: "a"}\n\ndata: [DONE]'
    assert [each.value for each in read(tmp_path, content)] == [
        b": hello\n\n",
        b'event: a\ndata: {"type":\ndata: "a"}\n\n',
        b"data: [DONE]\n\n",
    ]


@pytest.mark.parametrize("payload", ['{"a":1.50,"b":[1e5]}', '["\\ud83d"]'])
def test_payload_as_json(tmp_path: Path, payload: str) -> None:
    """An export that writes the value as JSON is read too, with its own spelling."""
    (record,) = read(tmp_path, b'{"offset":5,"payload":' + payload.encode() + b"}")
    assert (record.offset, record.value) == (5, payload.encode())


@pytest.mark.parametrize(
    "found", [["a", "1", "b", None, "odd"], [["a", "1"], ["b", None]], {"a": "1", "b": None}], ids=["flat", "pairs", "object"]
)
def test_headers(tmp_path: Path, found: Any) -> None:
    """Headers are read as kcat writes them, and as others do."""
    (record,) = read(tmp_path, lines({"payload": "", "headers": found}))
    assert list(record.headers) == [("a", b"1"), ("b", None)]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.jsonl"])
def test_compressed(tmp_path: Path, name: str) -> None:
    """Compression is told from the content: several members, any name, the same records."""
    parts = [lines({"payload": "a" * 70_000}), lines({"payload": "b"})]
    pack = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}.get(name.rsplit(".", 1)[1], bytes)
    records = read(tmp_path, b"".join(pack(part) for part in parts), name)
    assert [each.value for each in records] == [b"a" * 70_000, b"b"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("harm", [lambda packed: packed[:-5], lambda packed: packed[:20] + b"\0\0\0\0" + packed[24:]])
def test_damaged(tmp_path: Path, pack: Any, harm: Any) -> None:
    """A file that is cut off or damaged is named, never taken for whole."""
    content = lines(*({"payload": str(number)} for number in range(3_000)))
    with pytest.raises(ArchiveError, match=r"a\.x cannot be read"):
        read(tmp_path, harm(pack(content)), "a.x")


def test_missing_file() -> None:
    """A file that is not there is one sentence."""
    with pytest.raises(ArchiveError, match="/nowhere/a cannot be read: No such file"):
        list(Archive("in").read("/nowhere/a"))


def test_standard_input() -> None:
    """`-` reads standard input, compressed or not."""
    for content in (lines({"payload": "a"}), gzip.compress(lines({"payload": "a"}))):
        assert [each.value for each in Archive("in", io.BytesIO(content)).read("-")] == [b"a"]


def test_offsets_go_on_over_files(tmp_path: Path) -> None:
    """Several files are one archive."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(lines({"payload": name}))
    archive = Archive("in")
    assert [each.offset for name in ("a", "b") for each in archive.read(str(tmp_path / name))] == [0, 1]
    assert archive.records == 2
    assert archive.compressed_bytes == 2 * len(lines({"payload": "a"}))


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    """Bad input: any bytes at all give records or nothing, never an exception, unless they pose as compressed."""
    if content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return
    offsets = [each.offset for each in Archive("in", io.BytesIO(content)).read("-")]
    assert offsets == sorted(set(offsets))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


@given(
    st.dictionaries(
        st.sampled_from(["topic", "partition", "offset", "ts", "headers", "key", "key_base64", "payload", "payload_base64"]),
        json_values,
    )
)
def test_any_line(line: dict[str, Any]) -> None:
    """Bad input: a line whose fields have any type at all is one record, with an offset and a time."""
    records = list(Archive("in", io.BytesIO(json.dumps(line).encode() + b"\n")).read("-"))
    assert len(records) == 1
    assert records[0].offset >= 0
    assert records[0].timestamp >= 0


usual = st.fixed_dictionaries(
    {"topic": st.sampled_from(["in", "other", ""]), "partition": st.integers(-1, 2)},
    optional={
        "offset": st.integers(-1, 5) | st.just(1 << 62) | st.booleans(),
        "ts": st.integers(-1, 5) | st.just((1 << 53) + 1),
        "headers": st.sampled_from([None, [], {}, ["a", "b"], {"a": "b"}]),
        "key": st.none() | st.text(max_size=3) | st.integers(),
        "key_base64": st.none() | st.just("YQ=="),
        "payload": st.none() | st.text(max_size=3) | st.just("\ud800") | st.integers(),
        "payload_base64": st.none() | st.just("YQ=="),
    },
)


@given(st.lists(usual | st.just("data: x"), max_size=6))
def test_the_shortest_way_is_the_long_way(content: list[Any]) -> None:
    """A line that is read by the shortest way gives the same record, in the same place, as by the way that takes any line."""
    raw = b"".join(each.encode() + b"\n" if isinstance(each, str) else lines(each) for each in content)

    class Long(Archive):
        def _usual(self, _: bytes) -> None:
            """Never."""

    short, long = Archive("in", io.BytesIO(raw)), Long("in", io.BytesIO(raw))
    assert list(short.read("-")) == list(long.read("-"))
    assert (short.records, short.renumbered) == (long.records, long.renumbered)
