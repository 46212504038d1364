"""Whether the references in a schema that came in-band can only mean one thing.

Owns that question. A schema's size is counted along its references; where the engine resolves one to another place than the
count, 2 kB cost hours. It resolves nothing that is not a plain pointer or anchor.
"""

from typing import Any

from processor.core.schema_walk import REFERENCES, draft_of, resolve


def unclear(document: Any) -> str | None:
    """Why the size of a schema from outside cannot be known: a reference that may point elsewhere for the engine than here.

    Identifiers below the root change what a pointer is resolved against (JSON Schema core, 9.2), and one name for two schemas
    leaves open which of them is meant. Looked for in everything, since the engine may see a schema where none is known here.
    """
    todo = [document]
    anchors: set[str] = set()
    for part in todo:
        if isinstance(part, list):
            todo.extend(part)
        if not isinstance(part, dict):
            continue
        todo.extend(part.values())
        for keyword in ("$id", "id"):
            if part is not document and isinstance(part.get(keyword), str) and (keyword == "$id" or _is_old(document)):
                return f"`{keyword}` below the root"
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = part.get(keyword)
            if isinstance(name, str):
                if name in anchors:
                    return f"`{keyword}` gives a name that another schema has"
                anchors.add(name)
        for keyword in REFERENCES & part.keys():
            target = part[keyword]
            if isinstance(target, str) and not _is_plain(document, target):
                return f"`{keyword}` is neither `#`, nor a pointer to a schema of the document, nor `#` and an anchor"
    return None


def _is_old(document: Any) -> bool:
    return draft_of(document) == "draft4"


def _is_plain(document: Any, reference: str) -> bool:
    if reference.startswith("#/"):
        return "%" not in reference and isinstance(resolve(document, reference), dict | bool)
    return reference.startswith("#") and "/" not in reference and "%" not in reference
