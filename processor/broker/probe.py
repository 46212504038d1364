"""Asks a broker whether it serves: one Metadata request over a socket of its own.

A port that accepts is not enough: Kafka listens before the node is registered and unfenced, and clients that come then are
told that there are no brokers. It must never need a client library.
"""

import socket
import struct

_METADATA, _VERSION = 3, 1


def answers(host: str, port: int, *, timeout: float = 2.0) -> bool:
    """Whether the broker names at least one live broker within `timeout` seconds."""
    # Header: api key, version, correlation id, no client id. Body: an empty list of topics.
    request = struct.pack(">hhihi", _METADATA, _VERSION, 1, -1, 0)
    try:
        with socket.create_connection((host, port), timeout=timeout) as link:
            link.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _exactly(link, 4))
            reply = _exactly(link, size)
            brokers: int = struct.unpack_from(">i", reply, 4)[0]
    except (OSError, struct.error):
        return False
    return brokers > 0


def _exactly(link: socket.socket, size: int) -> bytes:
    """Read `size` bytes. Raises OSError where the other end closes before."""
    parts = bytearray()
    while len(parts) < size:
        part = link.recv(size - len(parts))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)
