"""Make `records.jsonl` from raw recordings: `python -m tests.interop.conformance.distil FOLDER`.

FOLDER holds one JSON file a scenario: `scenario`, `model_script`, `sent`, `events`, `model_requests`, `notes`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.interop.conformance.normal import normal
from tests.interop.conformance.records import Record, save

PRODUCT_DEFINITIONS = "many_auto_builtin"
"""Its notes hold the definitions of a coding product's own tools; the names of the tools are enough."""


def main(folder: Path) -> None:
    """Distil every recording of `folder`."""
    recordings = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    records = {recording["scenario"]: _record(recording) for recording in recordings}
    save(records)
    print(f"{len(records)} scenarios")


def _record(recording: dict[str, Any]) -> Record:
    name = recording["scenario"]
    notes = [note for note in recording["notes"] if name != PRODUCT_DEFINITIONS or "TOOLDEFS" not in note]
    outcome = {"events": recording["events"], "requests": recording["model_requests"], "notes": notes}
    return Record(name, recording["model_script"], recording["sent"], normal(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
