"""A real Kafka broker on loopback, for the demo, the tests and the benchmarks.

Owns the fetching of Apache Kafka through Maven, and the life of one broker process and its folder. It is plain and
synchronous, knows nothing of callgate's core, and must never serve anything but the machine it runs on.
"""

from processor.broker.errors import BrokerFailed, BrokerUnavailable
from processor.broker.jars import Tools, find_jars, find_tools
from processor.broker.listeners import Certificates
from processor.broker.server import Broker

__all__ = ["Broker", "BrokerFailed", "BrokerUnavailable", "Certificates", "Tools", "find_jars", "find_tools"]
