"""By hand: what a good engineer writes in an afternoon. aiokafka, json, a dict of streams, the jsonschema package.

At least once, with no recovery of what is open: a stream that spans a restart is lost. It decides at `output_item.done`, and
checks less than callgate does. Prints DONE once everything has been read and committed, and goes on until SIGTERM.
"""

import argparse
import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

ENDS = {"response.completed", "response.incomplete", "response.failed"}


class Guard:
    """Rebuilds calls and checks them."""

    def __init__(self, tools: Path) -> None:
        listed = json.loads(tools.read_text())
        self.tools = {tool["name"]: Draft202012Validator(tool["parameters"]) for tool in listed}
        self.streams: dict[bytes, dict[int, list[str]]] = {}

    def read(self, key: Any, value: Any) -> dict[str, Any] | None:
        """Take one event; the decision where a call has ended with it."""
        event = json.loads(value)
        kind = event["type"]
        if kind == "response.output_item.added":
            if event["item"]["type"] == "function_call":
                self.streams.setdefault(key, {})[event["output_index"]] = []
        elif kind == "response.function_call_arguments.delta":
            self.streams[key][event["output_index"]].append(event["delta"])
        elif kind == "response.output_item.done":
            if event["item"]["type"] == "function_call":
                deltas = self.streams[key].pop(event["output_index"])
                return self.decide(event["item"], "".join(deltas))
        elif kind in ENDS:
            self.streams.pop(key, None)
        return None

    def decide(self, item: dict[str, Any], joined: str) -> dict[str, Any]:
        """Check one call."""
        reason = self.fault(item, joined)
        call = {"call_id": item["call_id"], "name": item["name"], "arguments": item["arguments"]}
        return {"decision": "rejected" if reason else "approved", "reason": reason, **call}

    def fault(self, item: dict[str, Any], joined: str) -> str | None:
        """Say what is wrong with a call."""
        if item["status"] != "completed":
            return "status"
        if joined != item["arguments"]:
            return "conflict"
        validator = self.tools.get(item["name"])
        if validator is None:
            return "unknown_tool"
        try:
            arguments = json.loads(joined)
        except ValueError:
            return "arguments_parse"
        if validator.is_valid(arguments):
            return None
        return f"arguments_schema: {best_match(validator.iter_errors(arguments)).message}"


async def work(options: argparse.Namespace) -> None:
    """Read, decide and publish until cancelled."""
    guard = Guard(options.tools)
    consumer = AIOKafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=options.bootstrap, linger_ms=5)
    await producer.start()
    await consumer.start()
    left = options.events
    try:
        while True:
            batches = await consumer.getmany(timeout_ms=1000)
            for records in batches.values():
                for record in records:
                    made = guard.read(record.key, record.value)
                    if made is not None:
                        topic = f"{options.output}-{made['decision']}"
                        await producer.send(topic, json.dumps(made).encode(), key=record.key)
                left -= len(records)
            if batches:
                await producer.flush()
                await consumer.commit()
                if left == 0:
                    print("DONE", flush=True)
    finally:
        await consumer.stop()
        await producer.stop()


async def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--output", required=True, help="beginning of the output topics' names")
    parser.add_argument("--group", required=True)
    parser.add_argument("--events", type=int, required=True, help="records on the topic")
    parser.add_argument("--tools", type=Path, required=True)
    task = asyncio.ensure_future(work(parser.parse_args()))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


if __name__ == "__main__":
    asyncio.run(main())
