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

from hf_xorner.cli.help import COMMANDS, read_help
from hf_xorner.training.recipes import ROOT, recipe_names

REPOSITORY = Path(__file__).parent.parent
#: A line with nothing but a link to a class or function in the code is followed by that code.
CODE = re.compile(r"^\[`([\w.]+)`\]\((https://github\.com/hf-xorner/hf_xorner/blob/main/)([\w/]+\.py)\)$", re.MULTILINE)
#: Equations as pymdownx.arithmatex leaves them.
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add cli.md, a page for each command, and recipes.md."""
    pages = {f"cli/{command}.md": command_lines(command) for command in COMMANDS}
    for name, lines in {"cli.md": overview_lines(), **pages, "recipes.md": recipe_lines()}.items():
        files.append(File.generated(config, name, content="\n".join(lines)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the code that links name."""
    return CODE.sub(lambda link: excerpt(*link.groups()), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Turn equations into MathML."""
    return EQUATION.sub(lambda match: mathml(match[1] == "div", html.unescape(match[2])), content)


def overview_lines() -> list[str]:
    """The page of the command line: a table of the commands."""
    rows = [f"| [`hf-xorner {name}`](cli/{name}.md) | {read_help()[name]['summary']} |" for name in COMMANDS]
    return ["# Command line", "", "| command | |", "|---|---|", *rows]


def command_lines(command: str) -> list[str]:
    """The page of a command: what it does, examples, and a table of each group of options."""
    lines = []
    for name, entry in read_help().items():
        if name.split()[0] != command:
            continue
        lines += [f"{'#' if name == command else '##'} hf-xorner {name}", "", entry["about"], ""]
        lines += ["```bash", *entry["examples"], "```", ""]
        level = "##" if name == command else "###"
        for title, options in {"Arguments": entry["positional"], **entry["groups"]}.items():
            title = "more options" if title == "options" and len(entry["groups"]) > 1 else title
            prefix = "" if name == command else f"{name.split()[1]}-"
            rows = [option_row(option, text, prefix) for option, text in options.items()]
            if rows:
                lines += [
                    f"{level} {title.capitalize()}",
                    "",
                    "| option | meaning | default |",
                    "|---|---|---|",
                    *rows,
                    "",
                ]
    return lines


def option_row(option: str, text: str, prefix: str) -> str:
    """A row of a table of options, whose first cell has a link to itself."""
    text, _, default = text.removesuffix(")").partition(" (default: ") if "(default: " in text else (text, "", "")
    anchor = prefix + option.removeprefix("--")
    name = (
        f'<a id="{anchor}" href="#{anchor}"><code>{html.escape(option)}</code></a>'
        if option[0] == "-"
        else f"`{option}`"
    )
    # The words of a name are found by the search.
    words = option.removeprefix("--").replace("_", " ")
    cells = [
        name,
        f"*{words}:* {text}" if " " in words and option[0] == "-" else text,
        f"`{default}`" if default else "",
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


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
