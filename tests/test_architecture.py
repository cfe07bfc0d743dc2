"""Who may import whom, how long things may be, and other promises about the source that a machine can keep."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gradtape.xp import dialect

pytestmark = pytest.mark.tiny

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
FILES = sorted((SOURCE / "gradtape").rglob("*.py"))

# Lower never imports higher, not even inside a function. A module that is not named here is spelled as TensorFlow spells it.
LAYERS = {
    "errors": 0, "imports": 0, "scope": 0, "xp": 0, "values": 1, "core": 2, "tangents": 3, "ops": 4, "function": 5,
    "derivatives": 6, "optimizers": 6, "testing": 6, "inspect": 6, "summary": 6, "data": 7, "train": 7, "distribute": 8,
}  # fmt: skip
SPELLED, PACKAGE = 9, 10
HEAVY = {
    "jax", "keras", "scipy", "ml_dtypes", "opt_einsum", "matplotlib", "malt", "safetensors", "tensorboardX", "PIL", "sympy",
}  # fmt: skip
MAY_IMPORT_JAX = ("xp/jax", "function/", "distribute/")
MACHINE_PATH = re.compile(r"(?<![\w.~:/-])/(?:work|home|root|Users|tmp|mnt)/\w")


def name_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in FILES}


def short(file: Path) -> str:
    return str(file.relative_to(SOURCE / "gradtape"))


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def layer(module: str) -> int:
    _, *rest = module.split(".")
    return LAYERS.get(rest[0], SPELLED) if rest else PACKAGE


def imports(file: Path, lazy: bool) -> Iterator[tuple[str, int]]:
    """Every imported module with its line; of ours the exact module. ``lazy``: those inside functions too."""
    pending: list[ast.AST] = [tree_of(file)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{short(file)}:{node.lineno} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner if inner in MODULES else node.module), node.lineno
        elif isinstance(node, ast.expr) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue  # an expression holds no statement
        if lazy or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending.extend(ast.iter_child_nodes(node))


def report(violations: list[str]) -> None:
    assert not violations, "\n" + "\n".join(violations)


def test_lower_layers_never_import_higher_ones():
    report([
        f"{short(file)}:{line} imports {other}, which is above it"
        for module, file in MODULES.items() for other, line in imports(file, lazy=True)
        if other.split(".")[0] == "gradtape" and layer(other) > layer(module)
    ])  # fmt: skip


def test_no_import_cycles():
    graph = {m: {o for o, _ in imports(f, lazy=False) if o in MODULES and o != m} for m, f in MODULES.items()}
    while ready := [module for module, needs in graph.items() if not needs & graph.keys()]:
        for module in ready:
            del graph[module]
    report([f"{module} is on, or above, a cycle: {', '.join(sorted(needs & graph.keys()))}" for module, needs in graph.items()])


def test_heavy_packages_are_imported_where_and_when_they_are_used():
    wrong = []
    for file in FILES:
        here = short(file)
        for other, line in imports(file, lazy=True):
            package = other.split(".")[0]
            if package == "jax" and not here.startswith(MAY_IMPORT_JAX):
                wrong.append(f"{here}:{line} imports jax; only {', '.join(MAY_IMPORT_JAX)} may")
            if package == "keras" and not here.startswith("keras"):
                wrong.append(f"{here}:{line} imports keras; only keras/ and keras_backend/ may")
        for other, line in imports(file, lazy=False):
            package = other.split(".")[0]
            served = package == "keras" and here.startswith("keras_backend/")  # it is loaded by Keras alone
            if (package in HEAVY and not served and not here.startswith("xp/jax")) or other == "gradtape.xp.jax":
                wrong.append(f"{here}:{line} imports {other} when it is itself imported; do it inside a function")
    report(wrong)


def test_kernels_and_rules_use_the_dialect_alone():
    known = {*dialect.NAMES, "scope"}
    report([
        f"{short(file)}:{node.lineno} uses xp.{node.attr}, which is not in the dialect"
        for file in FILES for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "xp" and node.attr not in known
    ])  # fmt: skip


def lines_of_code(file: Path) -> int:
    """Without blank lines, comments and docstrings."""
    bare = ast.parse(file.read_text())
    text = {
        line for node in ast.walk(bare) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }  # fmt: skip
    lines = enumerate(file.read_text().splitlines(), 1)
    return sum(1 for i, line in lines if i not in text and line.strip() and not line.strip().startswith("#"))


def test_nothing_is_too_long_to_read():
    lengths = {file: len(file.read_text().splitlines()) for file in FILES}
    wrong = [f"{short(file)} has {n} lines, at most 700" for file, n in lengths.items() if n > 700]
    core = sum(lines_of_code(file) for file in FILES if short(file).startswith("core/"))
    wrong += [f"core/ has {core} lines of code, at most 2,460"] * (core > 2460)
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                n = node.end_lineno - node.lineno + 1
                wrong += [f"{short(file)}:{node.lineno} {node.name} has {n} lines, at most 60"] * (n > 60)
    report(wrong)


def test_user_errors_are_not_assertions():
    report([
        f"{short(file)}:{node.lineno} has an assert statement"
        for file in FILES for node in ast.walk(tree_of(file)) if isinstance(node, ast.Assert)
    ])  # fmt: skip


def test_no_tracked_file_names_a_place_on_some_machine():
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    wrong = []
    for name in filter(None, listed.split("\0")):
        try:
            lines = (ROOT / name).read_text().splitlines()
        except (UnicodeDecodeError, OSError):  # an image; a file that was removed and not committed yet
            continue
        wrong += [f"{name}:{i} {line.strip()[:100]}" for i, line in enumerate(lines, 1) if MACHINE_PATH.search(line)]
    report(wrong)
