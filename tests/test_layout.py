"""Rules of the layout: imports between packages, published code, sizes of modules, docstrings."""

import ast
import importlib
import re
import sys
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec

import pytest
from conftest import REPOSITORY
from transformers.dynamic_module_utils import get_imports, get_relative_imports

import hf_xorner

PACKAGE = REPOSITORY / "hf_xorner"
MODULES = sorted(PACKAGE.rglob("*.py"))
MODELS = sorted((PACKAGE / "models").glob("*.py"))
SCRIPTS = sorted((REPOSITORY / "scripts").glob("*.py"))

# A package or a top-level module may import itself and what is listed here. A new one is entered here.
MAY_IMPORT = {
    "errors": set(),
    "files": {"errors"},
    "models": set(),
    "registration": {"models"},
    "loading": {"errors", "models", "registration"},
    "entities": set(),
    "tagger": {"entities", "errors", "loading", "models"},
    "corpora": {"errors", "files", "models"},
    "vectors": {"corpora", "errors", "files", "models"},
    "export": {"entities", "errors", "files", "loading", "models"},
    "evaluation": {"corpora", "entities", "errors", "files", "models", "registration", "tagger"},
    "tagging": {"corpora", "entities", "errors", "files", "models", "tagger"},
    "training": {
        *("corpora", "errors", "evaluation", "files", "loading", "models", "registration", "tagger"),
        *("tagging", "vectors"),
    },
    "integrations": {"entities", "tagger"},
    "papers": {"corpora", "errors", "evaluation", "files", "models", "registration", "tagger", "training", "vectors"},
    "recipes": set(),
    "cli": {
        *("corpora", "entities", "errors", "evaluation", "export", "files", "hub", "loading", "models", "papers"),
        *("registration", "tagger", "tagging", "training", "vectors", "hf_xorner"),
    },
    "__main__": {"cli"},
    "hub": {"corpora", "errors", "evaluation", "export", "files", "models", "registration", "tagger", "training"},
}
PUBLISHED_CODE_MAY_IMPORT = {"torch", "transformers", "tokenizers", "numpy"}
LONGEST, SHORTEST = 800, 40

relative = [str(path.relative_to(REPOSITORY)) for path in MODULES]
every_module = pytest.mark.parametrize("path", MODULES, ids=relative)
every_model_module = pytest.mark.parametrize("path", MODELS, ids=[path.name for path in MODELS])


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


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
        if parts[0] == "hf_xorner":
            known = len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").exists())
            packages.add(parts[1] if known else "hf_xorner")
    return packages


def package_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def name_of(path):
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


# --- Imports ---------------------------------------------------------------------------------------------------------


@every_module
def test_packages_import_only_what_is_allowed(path):
    package = package_of(path)
    if package == "__init__":
        return
    assert package in MAY_IMPORT, f"{package} is new: enter it in MAY_IMPORT, with the packages that it may import"
    forbidden = packages_imported(path) - MAY_IMPORT[package] - {package}
    assert not forbidden, f"{path.name} in {package} imports {sorted(forbidden)}, which MAY_IMPORT forbids"


def test_allowed_imports_have_no_cycle():
    order = list(TopologicalSorter(MAY_IMPORT).static_order())
    assert order.index("models") < order.index("corpora") < order.index("training") < order.index("hub")
    assert order.index("evaluation") < order.index("training")


def test_modules_have_no_import_cycle():
    names = {name_of(path): path for path in MODULES}
    # `import hf_xorner` loads nothing: its names are looked up when they are first used.
    graph = {name: (imported(path) & names.keys()) - {name, "hf_xorner"} for name, path in names.items()}
    for name, path in names.items():
        if path.name == "__init__.py":  # `from . import x` names the package as well.
            continue
        package = name.rpartition(".")[0]
        if not any(
            isinstance(node, ast.ImportFrom) and node.level == 1 and node.module is None
            for node in ast.walk(tree_of(path))
        ):
            graph[name].discard(package)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@every_module
def test_library_imports_neither_scripts_nor_tests(path):
    tops = {name.split(".")[0] for name in imported(path)}
    outside = {"scripts", "tests", "conftest", "pytest", "hypothesis"} | {script.stem for script in SCRIPTS}
    # `evaluate` is also a library.
    assert not tops & (outside - {"evaluate"})


def test_forbidden_imports_are_found(tmp_path, monkeypatch):
    package = tmp_path / "hf_xorner"
    for name in ("models/a.py", "training/b.py", "tagger.py", "corpora/deep/c.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    monkeypatch.setitem(globals(), "REPOSITORY", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", package)
    for module, line, packages in (
        ("models/a.py", "from ..training import b", {"training"}),
        ("models/a.py", "from .. import training", {"hf_xorner", "training"}),
        ("models/a.py", "import hf_xorner.training.b", {"training"}),
        ("models/a.py", "def f():\n    from hf_xorner import Tagger", {"hf_xorner"}),
        ("models/a.py", "from .b import c", {"models"}),
        ("corpora/deep/c.py", "from ...training.b import x", {"training"}),
        ("tagger.py", "from .training import x", {"training"}),
        ("tagger.py", "import torch", set()),
    ):
        (package / module).write_text(line, encoding="utf-8")
        assert packages_imported(package / module) == packages, line


# --- Published code --------------------------------------------------------------------------------------------------


def test_models_are_one_flat_folder():
    inside = [path.name for path in (PACKAGE / "models").iterdir() if path.name != "__pycache__"]
    assert sorted(inside) == [path.name for path in MODELS]


@every_model_module
def test_models_import_only_required_packages(path):
    allowed = PUBLISHED_CODE_MAY_IMPORT | sys.stdlib_module_names
    assert {name.split(".")[0] for name in imported(path)} - {"hf_xorner"} <= allowed
    assert set(get_imports(path)) <= allowed


@every_model_module
def test_models_import_each_other_with_relative_imports(path):
    siblings = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "hf_xorner" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1, f"line {node.lineno}: only a sibling is copied"
            assert node.module, f"line {node.lineno}: write `from .name import …`; transformers overlooks this form"
            assert "." not in node.module, f"line {node.lineno}: the folder is flat"
            siblings.add(node.module)
        elif isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] != "hf_xorner", f"line {node.lineno}: import neighbours by a dot"
    assert all((PACKAGE / "models" / f"{name}.py").exists() for name in siblings)
    # The scanner of transformers is a regular expression, which also reads docstrings and comments.
    assert set(get_relative_imports(path)) == siblings


@every_model_module
def test_models_read_and_write_nothing(path):
    calls = {ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)}
    assert not calls & {"open", "print", "input", "exec", "eval"}
    assert not {name.split(".")[0] for name in imported(path)} & {
        "os",
        "io",
        "pathlib",
        "socket",
        "urllib",
        "subprocess",
    }


# --- Every module ----------------------------------------------------------------------------------------------------


@every_module
def test_nothing_is_unpickled(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"pickle", "dill", "joblib", "shelve", "marshal"}
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"\btorch\.load\b|allow_pickle\s*=\s*True|\bread_pickle\b", source)
    assert "torch.load" not in imported(path)


@every_module
def test_import_machinery_is_not_modified(path):
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"meta_path|path_hooks|sys\.modules|__import__|MetaPathFinder", source)


@every_module
def test_modules_are_not_too_long(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_no_tiny_module_with_a_single_importer():
    """A module of a few lines that one other module imports belongs into that module."""
    importers = Counter(name for path in MODULES for name in imported(path))
    for path in MODULES:
        # The Auto classes find `configuration_x` and `modeling_x` by these names.
        # The modules of cli are looked up by name, and those of integrations imported by users.
        if (
            path.parent.name in ("cli", "integrations")
            or path.name.startswith("__")
            or path.stem.startswith(("configuration_", "modeling_"))
        ):
            continue
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines > SHORTEST or importers[name_of(path)] > 1, f"fold {path.name} into the module that imports it"


def test_public_names_are_defined_once():
    definitions = defaultdict(list)
    for path in MODULES:
        if package_of(path) == "cli":  # every subcommand has `parser`, `run` and `EXAMPLES`
            continue
        for node in tree_of(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            for name in [*names, *([node.name] if hasattr(node, "name") else [])]:
                if is_public(name):
                    definitions[name].append(name_of(path))
    assert {name: modules for name, modules in definitions.items() if len(modules) > 1} == {}


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=lambda path: path.name)
def test_no_local_paths(path):
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"""["'](?:/home/|/work/|/tmp/|/root/|/Users/|[A-Z]:\\)""", source)


# --- Docstrings ------------------------------------------------------------------------------------------------------


def is_public(name):
    return not name.startswith("_")


def undocumented(tree, prefix=""):
    """The public functions, classes and methods without a docstring whose first line says something."""
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not is_public(node.name):
            continue
        if not first_line(ast.get_docstring(node)):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node, f"{prefix}{node.name}.")


def first_line(docstring):
    return (docstring or "").strip().split("\n")[0]


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=lambda path: path.name)
def test_public_code_has_docstrings(path):
    tree = tree_of(path)
    assert first_line(ast.get_docstring(tree)), "the module has no docstring"
    assert list(undocumented(tree)) == []


@pytest.mark.parametrize("name", hf_xorner.__all__)
def test_public_names_have_one_sentence_of_documentation(name):
    documented = getattr(hf_xorner, name)
    sentence = first_line(vars(documented).get("__doc__") if isinstance(documented, type) else documented.__doc__)
    assert sentence.endswith((".", ":")), sentence
    assert not sentence.startswith(f"{name}("), "a signature made by a machine"


def test_public_names_are_in_order_and_complete():
    assert sorted(hf_xorner.__all__) == hf_xorner.__all__
    lazy = {*hf_xorner._LAZY}
    assert lazy <= set(hf_xorner.__all__)
    for name in hf_xorner.__all__:
        assert name in dir(hf_xorner)
        assert getattr(hf_xorner, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'hf_xorner' has no attribute 'Nothing'"):
        _ = hf_xorner.Nothing


def test_every_module_can_be_imported():
    for path in MODULES:
        if name_of(path) != "hf_xorner.integrations.spacy" or find_spec("spacy"):
            importlib.import_module(name_of(path))
