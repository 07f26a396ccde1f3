"""The life of a run as a picture, drawn from the table of its transitions (`state.py`)."""

from temporality.actors.supervisor.state import ENDED, TRANSITIONS, Status, Step

_EVERYWHERE = frozenset({Step.FAILED, Step.CANCELLED})
"""Steps that are possible from every live status: drawn once, or they would hide the others."""


def run_diagram() -> str:
    """Return a Mermaid state diagram of the table."""
    lines = ["stateDiagram-v2", f"    [*] --> {Status.NEW}"]
    lines.extend(
        f"    {start} --> {end}: {step}"
        for (start, step), end in TRANSITIONS.items()
        if step not in _EVERYWHERE
    )
    live = sorted({start for start, step in TRANSITIONS if step in _EVERYWHERE})
    lines.append(f"    note right of {Status.AWAITING_MODEL}")
    lines.append(f"        from {', '.join(live)}:")
    lines.extend(f"        {step} leads to {end}" for step, end in sorted(_ends().items()))
    lines.append("    end note")
    lines.extend(f"    {status} --> [*]" for status in Status if status in ENDED)
    return "\n".join(lines) + "\n"


def _ends() -> dict[Step, Status]:
    return {step: end for (_, step), end in TRANSITIONS.items() if step in _EVERYWHERE}


if __name__ == "__main__":
    print(run_diagram(), end="")
