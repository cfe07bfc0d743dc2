"""From a function to one whose control flow calls `autograph_operators`: parsing, diastatic-malt's converters, a cache.

Only code of the user is converted, once for each code object, when a function that reaches it is first traced. The package
diastatic-malt is loaded then. What cannot be converted runs as it is written.
"""

from __future__ import annotations

import ast
import copy
import inspect
import os
import sysconfig
import threading
import types
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

from gradtape.core.callsite import logger
from gradtape.function.autograph_source import NoSource, Template, definition

UNCONVERTED = "__gradtape_unconverted__"
"""The mark on functions that stay as they are: the user said so, or they are converted already."""

_LIBRARIES = frozenset(
    "gradtape numpy scipy jax jaxlib keras ml_dtypes malt opt_einsum safetensors tensorboardX matplotlib PIL pandas sympy tqdm "
    "absl pytest _pytest hypothesis".split()
)
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_SITE = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_FAILED = """AutoGraph could not transform %s and will run it as-is.
Cause: %s
To silence this warning, decorate the function with @tf.autograph.experimental.do_not_convert"""


class _Verbosity:
    """How much to say about conversions."""

    level = 0
    also_print = False

    def tell(self, function: Callable, node: ast.AST) -> None:
        text = f"Converted {function}" + (f":\n\n{ast.unparse(node)}" if self.level > 1 else "")
        logger.info(text)
        if self.also_print:
            print(text)


verbosity = _Verbosity()
_lock = threading.RLock()
_templates: weakref.WeakKeyDictionary[types.CodeType, Template | None] = weakref.WeakKeyDictionary()
_sourceless: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


@cache
def available() -> bool:
    """Whether diastatic-malt is installed."""
    import importlib.util

    return importlib.util.find_spec("malt") is not None


def is_users(function: Any) -> bool:
    """Whether this is a Python function of the user's own, which may have control flow over tensors."""
    if type(function) is not types.FunctionType or hasattr(function, UNCONVERTED):
        return False
    if function.__globals__.get("__name__", "").partition(".")[0] in _LIBRARIES:
        return False
    code = function.__code__
    standard = code.co_filename.startswith(_STANDARD) and not any(site in code.co_filename for site in _SITE)
    return not standard and not code.co_flags & _RESUMED


def converted(function: types.FunctionType) -> Callable:
    """The function with its control flow converted; the function itself if that cannot be done."""
    from gradtape.function import autograph_operators

    template = _template(function)
    return function if template is None else template.instantiate(function, autograph_operators)


def _template(function: types.FunctionType) -> Template | None:
    code = function.__code__
    try:
        return _templates[code]
    except KeyError:
        pass
    with _lock:  # nobody else converts this code meanwhile
        if code not in _templates:
            _templates[code] = _convert(function) if available() else None
        return _templates[code]


def _convert(function: types.FunctionType) -> Template | None:
    try:
        node, name, generated = transformed(function)
        if verbosity.level:
            verbosity.tell(function, node)
        return Template(node, name, function, generated)
    except NoSource:
        _sourceless.add(function.__code__)
    except Exception as error:
        logger.warning(_FAILED, function, f"{type(error).__name__}: {error}")
    return None


def hint(error: BaseException, called: str) -> str | None:
    """What to do if an error was raised by control flow that was not converted, for want of its source or of a package."""
    if not available() and called in ("__bool__", "range"):
        return 'pip install "gradtape[xla]": it brings diastatic-malt, which makes control flow over tensors part of a program'
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code in _sourceless:
            return f"define {code.co_name} in a file: without its source, control flow over tensors stays as it is written"
        trace = trace.tb_next
    return None


# diastatic-malt at work


class _Options:
    """What malt's converters ask about what to convert."""

    def uses(self, feature: Any) -> bool:
        return feature.name == "BUILTIN_FUNCTIONS"  # `print`, too, is a call like any other

    def call_options(self) -> _Options:
        return self

    def to_ast(self) -> ast.expr:
        return ast.Constant(None)


class _User:
    options = _Options()


def transformed(function: types.FunctionType) -> tuple[ast.stmt, str, set[str]]:
    """The tree of the converted function, the name that it defines, and the names that were made up."""
    from malt.pyct import inspect_utils, naming, transformer

    node: Any = _Prepared().visit(definition(function))
    _bare(node)
    mark_places(node)
    namespace = inspect_utils.getnamespace(function)
    namer = naming.Namer(namespace)
    name = namer.new_symbol("ag__" + ("lambda" if isinstance(node, ast.Lambda) else node.name), ())
    info = transformer.EntityInfo(name, "", function.__code__.co_filename, (), namespace)
    node = _transform(node, transformer.Context(info, namer, _User()))
    if isinstance(node, ast.Lambda):
        node = ast.Assign(targets=[ast.Name(name, ctx=ast.Store())], value=node)
    else:
        node.name = name
    set_places(node)
    return node, name, namer.generated_names


def _bare(node: Any) -> None:
    """Without what was evaluated when the function was defined: default values, annotations."""
    node.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in node.args.defaults]
    node.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.returns = None
        node.decorator_list = []
        if len(node.body) == 1:  # it may be the docstring, which malt takes out
            node.body.append(ast.copy_location(ast.Pass(), node.body[0]))


def _transform(node: ast.AST, context: Any) -> ast.AST:
    """All converters in turn; each needs what those before it wrote down."""
    from malt.converters import (
        break_statements,
        call_trees,
        continue_statements,
        control_flow,
        functions,
        logical_expressions,
        return_statements,
        variables,
    )
    from malt.pyct import anno, cfg, qual_names
    from malt.pyct.static_analysis import activity, reaching_definitions

    graphs = cfg.build(node)
    node = qual_names.resolve(node)
    node = activity.resolve(node, context, None)
    node = reaching_definitions.resolve(node, context, graphs)
    anno.dup(node, {anno.Static.DEFINITIONS: anno.Static.ORIG_DEFINITIONS})
    node = functions.transform(node, context)
    node = _Assertions().visit(node)
    for converter in (break_statements, continue_statements, return_statements, call_trees, control_flow):
        node = converter.transform(node, context)
    node = _ConditionalExpressions().visit(node)
    for converter in (logical_expressions, variables):
        node = converter.transform(node, context)
    return node


class _Prepared(ast.NodeTransformer):
    """Says in other words, or refuses, what malt's converters do not understand."""

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if node.name is not None:
            assignment = ast.Assign([ast.Name(node.name, ast.Store())], _operator("caught"))
            node.body.insert(0, ast.fix_missing_locations(ast.copy_location(assignment, node)))
            node.name = None
        return node

    def visit_Assign(self, node: Any) -> Any:
        """Before an element is replaced at an index that is computed, say so: malt follows constant ones only."""
        self.generic_visit(node)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        computed = [t for t in targets if isinstance(t, ast.Subscript) and not isinstance(t.slice, ast.Constant)]
        named = [t.value for t in computed if isinstance(t.value, (ast.Name, ast.Attribute))]
        told = [ast.Expr(_operator("changes", copy.deepcopy(value))) for value in named]
        return [*(ast.fix_missing_locations(ast.copy_location(line, node)) for line in told), node]

    visit_AugAssign = visit_Assign

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        raise NotImplementedError("assignment expressions (:=) cannot be converted")

    def visit_Match(self, node: ast.Match) -> ast.AST:
        raise NotImplementedError("match statements cannot be converted")


class _Assertions(ast.NodeTransformer):
    """``assert test, message`` becomes a call, whatever the message is."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        text = [] if node.msg is None else [_later(node.msg)]
        return ast.copy_location(ast.Expr(_operator("assert_stmt", node.test, *text)), node)


class _ConditionalExpressions(ast.NodeTransformer):
    """``a if test else b`` becomes a call, at any depth."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        text = ast.unparse(node.test)
        self.generic_visit(node)
        return _operator("if_exp", node.test, _later(node.body), _later(node.orelse), ast.Constant(text))


def _later(expression: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), expression)


def _operator(name: str, *arguments: ast.expr) -> ast.expr:
    """A call of one of our operators."""
    return ast.Call(ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load()), list(arguments), [])


# Where each part stood in the file


def mark_places(tree: ast.AST) -> None:
    """Note in every part of a tree where it stands, in a way that conversion keeps."""
    from malt.pyct import anno

    node: Any
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            place = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
            if hasattr(node, "body"):  # its first line stands for it
                place = node.lineno, node.lineno, node.col_offset, node.col_offset
            anno.setanno(node, anno.Basic.ORIGIN, place)


def set_places(tree: ast.AST) -> None:
    """Give every part of a converted tree a place: its own, or that of the first of its parts, or what surrounds it."""
    from malt.pyct import anno

    known: dict[int, Any] = {}

    def find(node: ast.AST) -> Any:
        inner = [find(child) for child in ast.iter_child_nodes(node)]
        is_placed = "lineno" in node._attributes  # others, such as Load(), are shared by all trees
        own = anno.getanno(node, anno.Basic.ORIGIN, default=None) if is_placed else None
        known[id(node)] = found = own or next(filter(None, inner), None)
        return found

    def give(node: ast.AST, place: Any) -> None:
        place = known[id(node)] or place
        if "lineno" in node._attributes:
            node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = place  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            give(child, place)

    give(tree, find(tree))
