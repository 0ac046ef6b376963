"""The rooms of the house: who may know whom, what travels alone, and what no room may hold."""

import ast
import importlib
import re
import sys

import pytest
from conftest import REPOSITORY
from transformers.dynamic_module_utils import get_imports, get_relative_imports

import hf_xorner

PACKAGE = REPOSITORY / "hf_xorner"
MODULES = sorted(PACKAGE.rglob("*.py"))
MODELS = sorted((PACKAGE / "models").glob("*.py"))
SCRIPTS = sorted((REPOSITORY / "scripts").glob("*.py"))

# scripts → hub → training → data, evaluation → models; the loose modules stand between models and the rest.
# A room may import itself and what is listed, nothing else; a new room is entered here.
MAY_IMPORT = {
    "errors": set(),
    "files": set(),
    "models": set(),
    "registration": {"models"},
    "loading": {"errors", "models", "registration"},
    "tagger": {"errors", "loading", "models"},
    "data": {"errors", "models"},
    "evaluation": {"models", "registration", "tagger"},
    "tagging": {"data", "errors", "files", "models", "tagger"},
    "training": {"data", "errors", "evaluation", "files", "loading", "models", "registration", "tagger"},
    "analysis": {"training", "data", "errors", "evaluation", "models", "registration", "tagger"},
    "recipes": set(),
    "hub": {"training", "data", "errors", "evaluation", "models", "registration", "tagger"},
}
MAY_TRAVEL_WITH = {"torch", "transformers", "tokenizers", "numpy"}
LONGEST = 600

relative = [str(path.relative_to(REPOSITORY)) for path in MODULES]
every_module = pytest.mark.parametrize("path", MODULES, ids=relative)
every_model_module = pytest.mark.parametrize("path", MODELS, ids=[path.name for path in MODELS])


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path):
    """Every module that a file imports, anywhere in it, by its full name; `from a import b` gives a and a.b."""
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


def rooms_imported(path):
    """The rooms of the package that a file imports; the package's own face counts as the room `hf_xorner`."""
    rooms = set()
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "hf_xorner":
            known = len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").exists())
            rooms.add(parts[1] if known else "hf_xorner")
    return rooms


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


# --- Arrows ----------------------------------------------------------------------------------------------------------


@every_module
def test_arrows_point_one_way(path):
    room = room_of(path)
    if room == "__init__":
        return  # the face knows all
    assert room in MAY_IMPORT, f"{room} is a new room: enter it in MAY_IMPORT, with the rooms that it may know"
    backwards = rooms_imported(path) - MAY_IMPORT[room] - {room}
    assert not backwards, f"{path.name} in {room} imports {sorted(backwards)}, against the arrows of the house"


def test_arrows_are_no_circle():
    order = []
    rooms = dict(MAY_IMPORT)
    while rooms:
        free = [room for room, known in rooms.items() if known <= set(order)]
        assert free, f"{sorted(rooms)} know each other in a circle"
        order += free
        rooms = {room: known for room, known in rooms.items() if room not in free}
    assert order.index("models") < order.index("data") < order.index("training") < order.index("hub")
    assert order.index("evaluation") < order.index("training")


@every_module
def test_library_knows_neither_scripts_nor_tests(path):
    tops = {name.split(".")[0] for name in imported(path)}
    strangers = {"scripts", "tests", "conftest", "pytest", "hypothesis"} | {script.stem for script in SCRIPTS}
    # The library evaluate bears the name of a script.
    assert not tops & (strangers - {"evaluate"})


def test_an_arrow_that_runs_backwards_is_seen(tmp_path, monkeypatch):
    package = tmp_path / "hf_xorner"
    for name in ("models/a.py", "training/b.py", "tagger.py", "data/deep/c.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    monkeypatch.setitem(globals(), "REPOSITORY", tmp_path)
    monkeypatch.setitem(globals(), "PACKAGE", package)
    for module, line, rooms in (
        ("models/a.py", "from ..training import b", {"training"}),
        ("models/a.py", "from .. import training", {"hf_xorner", "training"}),
        ("models/a.py", "import hf_xorner.training.b", {"training"}),
        ("models/a.py", "def f():\n    from hf_xorner import Tagger", {"hf_xorner"}),
        ("models/a.py", "from .b import c", {"models"}),
        ("data/deep/c.py", "from ...training.b import x", {"training"}),
        ("tagger.py", "from .training import x", {"training"}),
        ("tagger.py", "import torch", set()),
    ):
        (package / module).write_text(line, encoding="utf-8")
        assert rooms_imported(package / module) == rooms, line


# --- What travels beside the weights ---------------------------------------------------------------------------------


def test_models_are_one_flat_folder():
    inside = [path.name for path in (PACKAGE / "models").iterdir() if path.name != "__pycache__"]
    assert sorted(inside) == [path.name for path in MODELS]


@every_model_module
def test_models_import_only_what_every_user_has(path):
    allowed = MAY_TRAVEL_WITH | sys.stdlib_module_names
    assert {name.split(".")[0] for name in imported(path)} - {"hf_xorner"} <= allowed
    assert set(get_imports(path)) <= allowed


@every_model_module
def test_models_import_each_other_in_the_one_form_that_is_copied(path):
    siblings = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "hf_xorner" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1, f"line {node.lineno}: only a neighbour travels along"
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


# --- What no room holds ----------------------------------------------------------------------------------------------


@every_module
def test_nothing_is_unpickled(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"pickle", "dill", "joblib", "shelve", "marshal"}
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"\btorch\.load\b|allow_pickle\s*=\s*True|\bread_pickle\b", source)
    assert "torch.load" not in imported(path)


@every_module
def test_imports_are_not_tampered_with(path):
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"meta_path|path_hooks|sys\.modules|__import__|MetaPathFinder", source)


@every_module
def test_modules_are_of_a_readable_length(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < LONGEST


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS], ids=lambda path: path.name)
def test_no_path_of_one_machine(path):
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
def test_public_code_says_what_it_is(path):
    tree = tree_of(path)
    assert first_line(ast.get_docstring(tree)), "the module has no docstring"
    assert list(undocumented(tree)) == []


@pytest.mark.parametrize("name", hf_xorner.__all__)
def test_public_names_say_what_they_are(name):
    documented = getattr(hf_xorner, name)
    sentence = first_line(vars(documented).get("__doc__") if isinstance(documented, type) else documented.__doc__)
    assert sentence.endswith((".", ":")), sentence
    assert not sentence.startswith(f"{name}("), "a signature made by a machine"


def test_public_names_are_in_order_and_complete():
    assert sorted(hf_xorner.__all__) == hf_xorner.__all__
    lazy = {*hf_xorner._LAZY, *hf_xorner.ON_DEMAND}
    assert lazy <= set(hf_xorner.__all__)
    for name in hf_xorner.__all__:
        assert name in dir(hf_xorner)
        assert getattr(hf_xorner, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'hf_xorner' has no attribute 'Nothing'"):
        _ = hf_xorner.Nothing


def test_every_module_can_be_imported():
    for path in MODULES:
        name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        importlib.import_module(name.removesuffix(".__init__"))
