"""Rules of the layout: imports between packages, published code, public names."""

import ast
import importlib
import io
import re
import sys
import tokenize
import tomllib
import zlib
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec

from conftest import REPOSITORY
from transformers.dynamic_module_utils import get_imports, get_relative_imports

import hf_xorner
from hf_xorner.files import PACKAGED

PACKAGE = REPOSITORY / "hf_xorner"
MODULES = sorted(PACKAGE.rglob("*.py"))
MODELS = sorted((PACKAGE / "models").glob("*.py"))


#: Lines of code without docstrings, comments and blanks. A feature may raise it, with the reason in the changelog.
MOST_LINES = 15_750

# A package or a top-level module may import itself and the names listed here. A new one is entered here.
MAY_IMPORT = {
    "errors": "",
    "files": "errors",
    "options": "errors",
    "text_table": "",
    "models": "",
    "safety": "",
    "registration": "models safety",
    "loading": "errors files models registration safety",
    "entities": "models safety",
    "tagger": "entities errors files hf_xorner loading models",
    "corpora": "errors files models options text_table",
    "vectors": "corpora errors files loading models text_table",
    "export": "entities errors files loading models safety",
    "evaluation": "corpora entities errors files models options registration tagger text_table",
    "tagging": "corpora entities errors files loading models options safety tagger",
    "training": "corpora errors evaluation files loading models options registration tagger tagging text_table vectors",
    "integrations": "entities tagger",
    "papers": "corpora errors evaluation files models options registration tagger training vectors",
    "recipes": "",
    "cli": (
        "corpora entities errors evaluation export files hf_xorner hub loading models options papers "
        "registration safety tagger tagging text_table training vectors"
    ),
    "__main__": "cli",
    "hub": "corpora errors evaluation export files loading models registration tagger training vectors",
}
PUBLISHED_CODE_MAY_IMPORT = {"torch", "transformers", "tokenizers", "numpy"}


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path):
    """Return the full names of all modules that a file imports; `from a import b` gives a and a.b."""
    package = path.relative_to(REPOSITORY).with_suffix("").parts[:-1]
    names = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


def packages_imported(path):
    """Return the packages of hf_xorner that a file imports; `hf_xorner` stands for its `__init__.py`."""
    packages = set()
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "hf_xorner" and len(parts) > 1:
            known = (PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").exists()
            packages.add(parts[1] if known else "hf_xorner")
    return packages


def name_of(path):
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


def test_packages_import_only_what_is_allowed():
    TopologicalSorter({name: allowed.split() for name, allowed in MAY_IMPORT.items()}).prepare()  # raises for a cycle
    for path in MODULES:
        package = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if package != "__init__":
            assert packages_imported(path) <= {package, *MAY_IMPORT[package].split()}, path


def test_modules_have_no_import_cycle():
    names = {name_of(path): path for path in MODULES}
    # `import hf_xorner` loads nothing: its names are looked up when they are first used.
    graph = {name: (imported(path) & names.keys()) - {name, "hf_xorner"} for name, path in names.items()}
    for name, path in names.items():
        from_package = re.findall(r"^from \. import (.*)$", path.read_text(encoding="utf-8"), re.M)
        modules = {sibling.stem for sibling in path.parent.iterdir()}
        if path.name != "__init__.py" and set(", ".join(from_package).split(", ")) - {""} <= modules:
            graph[name].discard(name.rpartition(".")[0])
    TopologicalSorter(graph).prepare()


def test_published_code_is_one_flat_folder_of_allowed_imports():
    """Transformers copies these files beside the weights, following relative imports of siblings only."""
    assert sorted(path.name for path in (PACKAGE / "models").iterdir() if path.name != "__pycache__") == [
        path.name for path in MODELS
    ]
    allowed = PUBLISHED_CODE_MAY_IMPORT | sys.stdlib_module_names
    for path in MODELS:
        relative = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom) and node.level]
        assert all(node.level == 1 and node.module and "." not in node.module for node in relative), path
        assert {name.split(".")[0] for name in imported(path)} <= allowed | {"hf_xorner"}, path
        assert not packages_imported(path) - {"models"}, path
        assert set(get_imports(path)) <= allowed, path
        # The scanner of transformers is a regular expression, which also reads docstrings and comments.
        assert set(get_relative_imports(path)) == {node.module for node in relative}, path


def code_lines(path):
    source = path.read_text(encoding="utf-8")
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(lines)


def test_package_does_not_grow_by_accident():
    assert sum(map(code_lines, MODULES)) <= MOST_LINES


def wheel_of(folder):
    """The version of a project of this repository, its packages, and the files that its wheel holds."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["setuptools"]
    files = set()
    for package in settings["packages"]:
        source = folder / settings["package-dir"].get(package, package.replace(".", "/"))
        for pattern in ("*.py", *settings["package-data"].get(package, [])):
            files |= set(source.glob(pattern))
    return project["project"].get("version"), settings["packages"], files


def test_wheels_are_small():
    _, _, files = wheel_of(REPOSITORY)
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 25_000_000


def test_wheels_have_every_package_and_model():
    _, packages, files = wheel_of(REPOSITORY)
    version, (multilingual,), more = wheel_of(REPOSITORY / "model_cards" / PACKAGED["multilingual"])
    assert version == hf_xorner.__version__
    models = {f"hf_xorner.{folder}" for folder in PACKAGED.values()}
    assert {*packages, multilingual} == {name_of(path.with_name("__init__.py")) for path in MODULES} | models
    for folder in PACKAGED.values():
        assert REPOSITORY / "model_cards" / folder / "model.safetensors" in files | more


def test_public_names_are_in_order_documented_and_importable():
    assert sorted(hf_xorner.__all__) == hf_xorner.__all__
    for name in hf_xorner.__all__:
        assert name in dir(hf_xorner)
        assert getattr(hf_xorner, name).__name__ == name
        assert (getattr(hf_xorner, name).__doc__ or "").strip(), name
    for path in MODULES:
        if name_of(path) != "hf_xorner.integrations.spacy" or find_spec("spacy"):
            importlib.import_module(name_of(path))
