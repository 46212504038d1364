"""The tools of the benchmark's agents: their schemas, arguments that fit, and arguments broken in one known way.

Owns the knowledge of what fits; it never asks a validator, so that the oracle is independent of the code under test.
"""

import random
from collections.abc import Callable
from typing import Any, TypeAlias

Arguments: TypeAlias = dict[str, Any]
Schema: TypeAlias = dict[str, Any]

_TEXT = (
    "check the open invoice before anything is sent back to the customer because the amount may still change "
    "and a second refund for one parcel has to be signed by two people on the late shift in that region"
)
PHRASES = _TEXT.split()
PLACES = ("Genève", "Łódź", "大阪", "Malmö", "Porto", "Bristol", "Fargo", "Graz")
UNITS = ("metric", "imperial", "kelvin")
COINS = ("CHF", "EUR", "GBP", "NOK", "USD")
LEVELS = ("low", "normal", "urgent")


def words(rng: random.Random, least: int, most: int) -> str:
    """A few words in a row, `least` to `most` of them."""
    return " ".join(rng.choices(PHRASES, k=rng.randint(least, most)))


def digits(rng: random.Random, count: int) -> str:
    """Random hexadecimal digits."""
    return f"{rng.getrandbits(4 * count):0{count}x}"


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def _text(most: int, **more: Any) -> Schema:
    return {"type": "string", "maxLength": most, **more}


def _integer(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _list(items: Schema, most: int, least: int = 1) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


MAIL = "^[^@ ]+@[^@ ]+$"
IBAN = "^[A-Z]{2}[0-9]{18}$"

SCHEMAS: dict[str, Schema] = {
    "forecast": _object({"place": _text(60, minLength=1), "units": {"enum": list(UNITS)}}, {"days": _integer(1, 10)}),
    "refund_parcel": _object(
        {
            "parcel": _text(40, pattern="^pcl_[0-9a-f]{12}$"),
            "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 9000},
            "currency": {"type": "string", "enum": list(COINS)},
            "why": _text(300, minLength=3),
        },
        {"tell_customer": {"type": "boolean"}},
    ),
    "write_mail": _object(
        {"to": _list(_text(120, pattern=MAIL), 4), "subject": _text(140), "body": _text(2500)},
        {"level": {"enum": list(LEVELS)}},
    ),
    "find_pages": _object(
        {"query": _text(300, minLength=1), "limit": _integer(1, 40)},
        {"within": _object({}, {"labels": _list(_text(30), 8, 0), "since": _integer(1995, 2035)})},
    ),
    "open_case": _object(
        {
            "title": _text(120, minLength=4),
            "level": {"type": "string", "enum": list(LEVELS)},
            "owner": {"type": ["string", "null"], "maxLength": 50},
            "steps": _list(_text(200), 7),
        }
    ),
    "pay": _object(
        {
            "source": _text(30, pattern=IBAN),
            "target": _text(30, pattern=IBAN),
            "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 50000},
            "currency": {"type": "string", "enum": list(COINS)},
        },
        {"note": _text(140)},
    ),
    "plan_meeting": _object(
        {
            "title": _text(120, minLength=1),
            "start": _text(16, pattern="^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]$"),
            "minutes": _integer(5, 480),
            "people": _list(_object({"mail": _text(120, pattern=MAIL)}, {"may_skip": {"type": "boolean"}}), 6),
        }
    ),
    "query_table": _object(
        {
            "table": {"type": "string", "enum": ["bills", "buyers", "parcels", "events"]},
            "columns": _list(_text(30, pattern="^[a-z_]+$"), 10),
            "limit": _integer(1, 1000),
        },
        {
            "where": _list(
                _object(
                    {
                        "column": _text(30, pattern="^[a-z_]+$"),
                        "is": {"enum": ["=", "<", ">", "!="]},
                        "value": {"type": ["string", "number", "boolean"]},
                    }
                ),
                4,
                0,
            )
        },
    ),
}
"""JSON Schema of each tool's arguments."""


def _mail(rng: random.Random) -> str:
    return f"{rng.choice(PHRASES)}.{digits(rng, 4)}@example.com"


def _iban(rng: random.Random) -> str:
    return rng.choice(("CH", "DE", "FR")) + f"{rng.randrange(10**18):018d}"


def _amount(rng: random.Random, most: int) -> float:
    return round(rng.uniform(0.5, most), 2)


def _forecast(rng: random.Random) -> Arguments:
    return {"place": rng.choice(PLACES), "units": rng.choice(UNITS), "days": rng.randint(1, 10)}


def _refund_parcel(rng: random.Random) -> Arguments:
    return {
        "parcel": "pcl_" + digits(rng, 12),
        "amount": _amount(rng, 8999),
        "currency": rng.choice(COINS),
        "why": words(rng, 4, 12),
        "tell_customer": rng.random() < 0.5,
    }


def _write_mail(rng: random.Random) -> Arguments:
    return {
        "to": [_mail(rng) for _ in range(rng.randint(1, 3))],
        "subject": words(rng, 3, 7),
        "body": f'{words(rng, 10, 30)}\n"{words(rng, 2, 4)}"',
        "level": rng.choice(LEVELS),
    }


def _find_pages(rng: random.Random) -> Arguments:
    within = {"labels": rng.sample(PHRASES, 2), "since": rng.randint(1995, 2035)}
    return {"query": words(rng, 3, 9), "limit": rng.randint(1, 40), "within": within}


def _open_case(rng: random.Random) -> Arguments:
    return {
        "title": words(rng, 3, 8),
        "level": rng.choice(LEVELS),
        "owner": rng.choice((None, rng.choice(PHRASES))),
        "steps": [words(rng, 3, 8) for _ in range(rng.randint(1, 4))],
    }


def _pay(rng: random.Random) -> Arguments:
    return {
        "source": _iban(rng),
        "target": _iban(rng),
        "amount": _amount(rng, 49999),
        "currency": rng.choice(COINS),
        "note": words(rng, 2, 8),
    }


def _plan_meeting(rng: random.Random) -> Arguments:
    day = f"20{rng.randint(24, 31)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    return {
        "title": words(rng, 2, 5),
        "start": f"{day}T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
        "minutes": rng.randint(5, 480),
        "people": [{"mail": _mail(rng), "may_skip": rng.random() < 0.3} for _ in range(rng.randint(1, 4))],
    }


def _query_table(rng: random.Random) -> Arguments:
    where = [{"column": "amount", "is": rng.choice("=<>"), "value": rng.randint(0, 9999)} for _ in range(rng.randint(0, 2))]
    return {
        "table": rng.choice(("bills", "buyers", "parcels", "events")),
        "columns": rng.sample(("id", "name", "amount", "made_at", "state"), rng.randint(1, 5)),
        "limit": rng.randint(1, 1000),
        "where": where,
    }


MAKERS: dict[str, Callable[[random.Random], Arguments]] = {
    "forecast": _forecast,
    "refund_parcel": _refund_parcel,
    "write_mail": _write_mail,
    "find_pages": _find_pages,
    "open_case": _open_case,
    "pay": _pay,
    "plan_meeting": _plan_meeting,
    "query_table": _query_table,
}
"""Makes arguments that fit the tool of this name."""


def broken(rng: random.Random, name: str) -> Arguments:
    """Arguments that do not fit: a property is missing, unknown, of no allowed type, out of range or not listed."""
    arguments = MAKERS[name](rng)
    properties = SCHEMAS[name]["properties"]
    ways = ["missing", "unknown", "type"]
    ranged = [key for key in arguments if "maximum" in properties[key]]
    listed = [key for key in arguments if "enum" in properties[key] or "pattern" in properties[key]]
    ways += ["range"] * bool(ranged) + ["value"] * bool(listed)
    way = rng.choice(ways)
    if way == "missing":
        del arguments[rng.choice(SCHEMAS[name]["required"])]
    elif way == "unknown":
        arguments[rng.choice(("force", "as_admin", "dry"))] = True
    elif way == "type":
        # Only `within` may be an object, so that an object anywhere else has no allowed type.
        arguments[rng.choice([key for key in arguments if key != "within"])] = {"value": 1}
    elif way == "range":
        key = rng.choice(ranged)
        arguments[key] = rng.choice((properties[key]["maximum"] + 1, -1))
    else:
        arguments[rng.choice(listed)] = "not one of them " + digits(rng, 4)
    return arguments


def declarations(names: list[str], rng: random.Random | None = None) -> list[dict[str, Any]]:
    """These tools in the `tools` form of the Responses API, with descriptions where a generator is given."""
    return [
        {
            "type": "function",
            "name": name,
            "description": f"{name.replace('_', ' ').capitalize()}. {words(rng, 8, 16) if rng else ''}".strip(),
            "parameters": SCHEMAS[name],
            "strict": True,
        }
        for name in names
    ]


def padded(count: int, size_bytes: int) -> list[dict[str, Any]]:
    """`count` further tools of about `size_bytes` each that nobody calls, as agent platforms echo them."""
    found = []
    for number in range(count):
        rng = random.Random(number)
        properties: dict[str, Schema] = {}
        while len(str(properties)) < size_bytes - 200:
            properties[f"field_{len(properties)}"] = _text(80, description=words(rng, 6, 12))
        parameters = {"type": "object", "properties": properties, "additionalProperties": False}
        found.append({"type": "function", "name": f"idle_{number}", "description": words(rng, 8, 16), "parameters": parameters})
    return found
