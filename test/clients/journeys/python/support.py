"""What the journeys in Python share. They check what their clients get."""

import json
import os
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict, TypeVar

T = TypeVar("T")

base_url = os.environ["BASE_URL"]
api_key = os.environ["API_KEY"]
# An id of nothing.
nowhere = "00000000-0000-4000-8000-000000000000"
file_text = "# Notes\n\nThe bridge opens at noon.\n"


class Frame(TypedDict):
    seq: int
    type: str
    data: NotRequired[dict[str, Any]]


def check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"It does not hold that {what}.")


def expect(kind: type[T], value: object) -> T:
    """The value, which must be of that type."""
    if not isinstance(value, kind):
        raise AssertionError(f"Not {kind.__name__}: {value!r}")
    return value


def frames_of(text: str) -> list[Frame]:
    """Server-Sent Events as the document says: `id` is seq, `event` is type, `data` is JSON."""
    frames: list[Frame] = []
    for part in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.split("\n") if ": " in line)
        if "event" in fields:
            frame = Frame(seq=int(fields["id"]), type=fields["event"])
            frames.append({**frame, "data": json.loads(fields["data"])})
    return frames


steps: list[Callable[[], None]] = []


def step(run: Callable[[], None]) -> Callable[[], None]:
    """Adds a step to the journey. Its name is the function's."""
    steps.append(run)
    return run


def play() -> None:
    """Plays the steps one after the other, and prints the name of each that held."""
    for run in steps:
        run()
        print(run.__name__.replace("_", " "), flush=True)
