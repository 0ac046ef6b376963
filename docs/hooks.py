"""Hooks of MkDocs: generated pages, excerpts of the code, and equations as MathML, which needs no script."""

import ast
import html
import re
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

from hf_xorner.cli.help import COMMANDS, help_of
from hf_xorner.training.recipes import ROOT, recipe_names

REPOSITORY = Path(__file__).parent.parent
#: A line with nothing but a link to a class or function in the code is followed by that code.
CODE = re.compile(r"^\[`([\w.]+)`\]\((https://github\.com/hf-xorner/hf_xorner/blob/main/)([\w/]+\.py)\)$", re.MULTILINE)
#: Equations as pymdownx.arithmatex leaves them.
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add cli.md and recipes.md."""
    for name, lines in (("cli.md", command_lines()), ("recipes.md", recipe_lines())):
        files.append(File.generated(config, name, content="\n".join(lines)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the code that links name."""
    return CODE.sub(lambda link: excerpt(*link.groups()), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Turn equations into MathML."""
    return EQUATION.sub(lambda match: mathml(match[1] == "div", html.unescape(match[2])), content)


def command_lines() -> list[str]:
    """The page of the command line, from the help texts."""
    lines = ["# Command line", ""]
    for command in COMMANDS:
        text = help_of(command, ["--help-all"]) or ""
        lines += [f"## hf-xorner {command}", "", "```{ .text .help }", text, "```", ""]
    return lines


def recipe_lines() -> list[str]:
    """The page of the recipes: each YAML file as it is, with the citations in its comments."""
    lines = [
        "# Recipes",
        "",
        "`hf-xorner train NAME` trains by one of these files, which are part of the package; options on the command",
        "line replace those of the recipe. `extends` names a recipe whose options it has as well",
        "([recipes of your own](formats.md#recipes)). [The papers' tables](papers.md) are made of them.",
        "",
    ]
    for paper, names in groupby(recipe_names(), key=lambda name: name.partition("/")[0]):
        lines += [f"## {paper}", ""]
        for name in names:
            text = (ROOT / f"{name}.yaml").read_text(encoding="utf-8").strip()
            lines += [f"### {name}", "", "```yaml", text, "```", ""]
    return lines


def definition(path: str, name: str) -> tuple[ast.ClassDef | ast.FunctionDef, list[str]]:
    """A class or function of a file, by its name with dots, and the lines of the file."""
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    node: Any = ast.parse(text)
    for part in name.split("."):
        definitions = [each for each in node.body if getattr(each, "name", None) == part]
        if len(definitions) != 1:
            raise ValueError(f"{path} has no {name}, which a page shows")
        node = definitions[0]
    return node, text.splitlines()


def excerpt(name: str, site: str, path: str) -> str:
    """The code of a class or function, below a link to its lines."""
    node, lines = definition(path, name)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    code = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
    link = f"[`{name}` in `{path}`]({site}{path}#L{first}-L{node.end_lineno})"
    return f"{link}:\n\n```python\n{code}\n```"


def mathml(display: bool, tex: str) -> str:
    """An equation of LaTeX as MathML."""
    equation = convert(tex.strip(), display="block" if display else "inline").replace("<mi>;</mi>", "<mo>;</mo>")
    return f'<div class="equation">{equation}</div>' if display else equation
