"""Finds TVMScript in Python files (the outermost decorated definitions), and groups messages by shape."""

import ast
import re
import textwrap
from dataclasses import dataclass

DECORATORS = {"ir_module", "function", "prim_func"}
NAMESPACES = {"I", "R", "T", "Tx", "relax", "tir", "tirx", "ir", "script"}


@dataclass
class Region:
    """A decorated class or function of a file."""

    file: str
    first: int
    last: int
    kind: str
    text: str
    accepted: bool = False
    reason: str = ""

    @property
    def where(self):
        """The file and line of the region."""
        return f"{self.file}:{self.first}"


def decorator_kind(decorator):
    """Returns `ir_module`, `function` or `prim_func` if the decorator is one of TVMScript's; otherwise None."""
    head = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(head, ast.Name):
        return head.id if head.id == "ir_module" else None
    if not isinstance(head, ast.Attribute) or head.attr not in DECORATORS:
        return None
    owner = head.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", None)
    return head.attr if name in NAMESPACES else None


def regions_of(file, text):
    """Yields the outermost decorated regions of a Python text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines(keepends=True)
    todo = [tree]
    while todo:
        node = todo.pop()
        kinds = [kind for kind in map(decorator_kind, getattr(node, "decorator_list", [])) if kind]
        if kinds:
            first = min(decorator.lineno for decorator in node.decorator_list)
            source = textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
            yield Region(file, first, node.end_lineno, kinds[0], source)
        else:
            todo.extend(ast.iter_child_nodes(node))


def shape_of(message):
    """Returns a message without names and numbers, for grouping."""
    message = re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'", "…", message)
    return re.sub(r"\d+", "0", message)[:110]
