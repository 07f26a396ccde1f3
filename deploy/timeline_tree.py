"""A run's timeline as a tree for terminals."""

from rich.markup import escape
from rich.tree import Tree

from temporality.storage.timeline_view import (
    ActivationView,
    BlockView,
    CallView,
    HintView,
    MissView,
    ModelView,
    RunView,
    TurnView,
)

_STYLES = {
    "succeeded": "green",
    "finished": "green",
    "replied": "green",
    "success": "green",
    "failed": "red",
    "error": "red",
    "timeout": "red",
    "blocked": "yellow",
    "denied": "yellow",
    "cancelled": "yellow",
    "skipped": "dim",
    "empty": "dim",
}


def render_timeline(run: RunView) -> Tree:
    """Return the tree of a run: every text in it is escaped, so that no fact can style or forge a line."""
    tree = Tree(
        f"[bold]{_line(run.run)}[/] {_word(run.status)}"
        + _rest(run.agent, run.model, f"project {run.project}", run.started)
    )
    if run.task:
        tree.add(f"task: {_line(run.task)}")
    for turn in run.turns:
        _add_turn(tree, turn)
    if run.ending:
        tree.add(f"{'answer' if run.status == 'finished' else run.status}: {_line(run.ending)}")
    tree.add(
        f"[dim]{run.input_tokens} tokens in, {run.output_tokens} out · {run.activations} look-ups ·"
        f" {run.injected} hints injected[/]"
    )
    return tree


def _add_turn(tree: Tree, turn: TurnView) -> None:
    branch = tree.add(f"[bold]turn {turn.turn}[/]" if turn.turn else "[bold]before the first request[/]")
    for model in turn.models:
        branch.add(_model(model))
    for call in turn.calls:
        leaf = branch.add(_call(call))
        if call.message:
            leaf.add(f"[dim]{_line(call.message)}[/]")
        for activation in call.activations:
            _add_activation(leaf, activation)
    for activation in turn.activations:
        _add_activation(branch, activation)
    for miss in turn.missed:
        branch.add(_miss(miss))
    if turn.block:
        branch.add(_block(turn.block))


def _add_activation(tree: Tree, activation: ActivationView) -> None:
    leaf = tree.add(_activation(activation))
    for hint in activation.hints:
        leaf.add(_hint(hint))


def _model(model: ModelView) -> str:
    tokens = f"{model.input_tokens} tokens in, {model.output_tokens} out"
    if model.outcome == "replied":
        return f"model {_word(model.outcome)}" + _rest(
            model.model, f"{model.duration_ms} ms", tokens, model.finish_reason
        )
    again = f"try {model.attempt}" if model.attempt > 1 else None
    return f"model {_word(model.outcome)}" + _rest(model.model, again, model.error_class, model.message)


def _call(call: CallView) -> str:
    name = f"{call.mcp_server}.{call.tool}" if call.mcp_server else call.tool
    uncertain = "effect uncertain" if call.effect == "uncertain" else None
    return f"[bold]{_line(name)}[/] {_word(call.outcome)}" + _rest(
        call.error_class, uncertain, f"{call.duration_ms} ms"
    )


def _activation(activation: ActivationView) -> str:
    if activation.result == "skipped":
        why = _rest(activation.skip_reason, activation.situation_key)
        return f"{_line(activation.trigger)} {_word('skipped')}{why}"
    return f"[cyan]{_line(activation.trigger)}[/] {_word(activation.result)}" + _rest(
        activation.situation_key,
        f"{activation.found} found, {activation.injected} injected",
        f"{activation.tokens} tokens" if activation.tokens else None,
        f"{activation.retrieval_ms} ms",
        activation.detail,
    )


def _hint(hint: HintView) -> str:
    verdict = "[green]injected[/]" if hint.injected else f"[dim]not injected: {_line(hint.reason or '?')}[/]"
    return f"{_line(hint.knowledge_id)} {verdict}" + _rest(hint.tier, f"score {hint.score:g}")


def _miss(miss: MissView) -> str:
    return f"[yellow]no answer of {_line(miss.trigger)}[/]" + _rest(miss.reason, miss.detail)


def _block(block: BlockView) -> str:
    return f"[green]block injected[/]{_rest(f'{block.tokens} tokens', ', '.join(block.knowledge_ids))}"


def _word(word: str) -> str:
    style = _STYLES.get(word)
    return f"[{style}]{_line(word)}[/]" if style else _line(word)


def _rest(*parts: str | None) -> str:
    """Return the parts that are known, behind the head of a line."""
    known = [_line(part) for part in parts if part]
    return f" [dim]· {' · '.join(known)}[/]" if known else ""


def _line(text: str) -> str:
    """Return `text` as one line of visible characters: no markup, no control sequence of a terminal."""
    line = " ".join(text.split())
    return escape("".join(character if character.isprintable() else "�" for character in line))
