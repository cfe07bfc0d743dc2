"""Counts what the redesign of the engine is measured by. `python tools/engine_report.py [FOLDER of sources]`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
BY_POSITION = re.compile(r"\brecord\[[\d:]")
BRANCHES = (
    ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.With, ast.Assert, ast.comprehension, ast.AsyncFor,
    ast.match_case,
)  # fmt: skip


def lines_of_code(text: str) -> int:
    """Without blank lines, comments and docstrings."""
    strings = {
        line for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }  # fmt: skip
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for i, line in lines if i not in strings and line.strip() and not line.strip().startswith("#"))


def complexity(function: ast.AST) -> int:
    """McCabe's number, with every `and` and `or`; functions inside count for themselves."""
    total, pending = 1, list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        total += len(node.values) - 1 if isinstance(node, ast.BoolOp) else isinstance(node, BRANCHES)
        pending.extend(ast.iter_child_nodes(node))
    return total


def complexities(files: dict[str, str]) -> list[tuple[int, str]]:
    found = [
        (complexity(node), f"{name}:{node.lineno} {node.name}") for name, text in files.items()
        for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]  # fmt: skip
    return sorted(found, reverse=True)


def _file(module: str) -> str:
    return module.removeprefix("gradtape.").replace(".", "/") + ".py"


def rebound(files: dict[str, str]) -> Iterator[str]:
    """Attributes of an imported module of ours that are assigned: its globals, from outside."""
    for name, text in files.items():
        tree = ast.parse(text)
        modules = {
            alias.asname or alias.name for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradtape")
            for alias in node.names if _file(f"{node.module}.{alias.name}") in files
        }  # fmt: skip
        for node in ast.walk(tree):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                for part in parts:
                    if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in modules:
                        yield f"{name}:{node.lineno} {ast.unparse(part)}"


def main() -> None:
    source = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "src") / "gradtape"
    files = {str(file.relative_to(source)): file.read_text() for file in sorted(source.rglob("*.py"))}
    core = {name: text for name, text in files.items() if name.startswith("core/")}
    outside = {name: text for name, text in files.items() if name not in core}
    highest, in_core = complexities(files)[0], complexities(core)[0]
    local = [f"{n}:{i}" for n, t in files.items() for i, line in enumerate(t.splitlines(), 1) if "threading.local" in line]
    context = [n for n, t in files.items() if re.search(r"\bContextVar\(", t)]
    rows = [
        ("code lines of core/", sum(map(lines_of_code, core.values()))),
        ("places outside of it that read a record by position", sum(len(BY_POSITION.findall(t)) for t in outside.values())),
        ("thread-locals and context variables", len(local) + len(context)),
        ("globals of a module rebound from another", len(list(rebound(files)))),
        ("uses of getrefcount", sum(t.count("getrefcount(") for t in files.values())),
        ("highest complexity", f"{highest[0]} ({highest[1]})"),
        ("highest complexity in core/", f"{in_core[0]} ({in_core[1]})"),
        ("code lines of everything", sum(map(lines_of_code, files.values()))),
    ]
    for what, count in rows:
        print(f"{what:55}{count}")
    for line in (*rebound(files), *local):
        print("   ", line)


if __name__ == "__main__":
    main()
