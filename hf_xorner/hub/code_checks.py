"""What the modules that travel beside the weights may do: strangers run them on their own machines.

A module is read, not run. It may import its neighbours and, of a few libraries, what is listed here; everything else is
refused, and so are the ways round that list that can be seen in a text. It guards against mistakes, such as a line left
from debugging, and against what a reader would not notice; it is no prison for code that means harm. What is put
together only when the code runs, out of pieces of names, is not seen.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Container, Iterator
from importlib import import_module
from inspect import ismodule
from pathlib import Path
from typing import NamedTuple

#: What may be used of each module: these names, or by None all that are public and no modules themselves.
ALLOWED: dict[str, set[str] | None] = {
    # The standard library: what computes and touches nothing.
    **dict.fromkeys(("__future__", "abc", "collections", "collections.abc", "numbers", "typing")),
    **dict.fromkeys(("bisect", "heapq", "itertools", "math", "random", "re", "unicodedata")),
    "contextlib": {"ExitStack", "contextmanager", "nullcontext", "suppress"},
    "copy": {"copy", "deepcopy"},
    "dataclasses": {"KW_ONLY", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"},
    "enum": {"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum", "auto", "unique"},
    "functools": {"cache", "cached_property", "lru_cache", "partial", "reduce", "total_ordering", "wraps"},
    "json": {"JSONDecodeError", "dumps", "loads"},
    "string": {"ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "punctuation"},
    "textwrap": {"dedent", "fill", "indent", "shorten", "wrap"},
    "warnings": {"catch_warnings", "simplefilter", "warn"},
    # The libraries that every user has.
    **dict.fromkeys(("torch", "torch.amp", "torch.autograd", "torch.autograd.function", "torch.fft", "torch.linalg")),
    **dict.fromkeys(("torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn")),
    **dict.fromkeys(("torch.special", "torch.utils", "torch.utils.checkpoint")),
    "torch.compiler": {"disable", "is_compiling"},
    "torch.jit": {"is_tracing"},
    **dict.fromkeys(("numpy", "numpy.fft", "numpy.linalg", "numpy.random", "numpy.typing")),
    "transformers": {
        *("AutoConfig", "AutoModel", "AutoModelForTokenClassification", "AutoTokenizer", "BatchEncoding"),
        *("PreTrainedConfig", "PreTrainedModel", "PreTrainedTokenizerFast"),
    },
    "transformers.activations": {"ACT2FN"},
    "transformers.initialization": None,
    "transformers.modeling_outputs": None,
    "transformers.tokenization_utils_base": {"BatchEncoding", "PaddingStrategy", "TruncationStrategy"},
    "transformers.utils": {"ModelOutput", "PaddingStrategy", "can_return_tuple"},
    "transformers.utils.generic": {"maybe_autocast"},
    "tokenizers": {"AddedToken", "Encoding", "NormalizedString", "Regex", "Tokenizer"},
    **dict.fromkeys(("tokenizers.decoders", "tokenizers.models", "tokenizers.normalizers")),
    **dict.fromkeys(("tokenizers.pre_tokenizers", "tokenizers.processors")),
}
#: Of what is public there: what reads or writes files, runs what a string says, or runs programs.
BARRED = {
    "torch": {
        *("load", "save", "from_file", "compile", "fork", "get_device_module", "get_file_path", "import_ir_module"),
        *("import_ir_module_from_buffer", "parse_ir", "CompilationUnit", "LiteScriptModule", "PyTorchFileReader"),
        *("PyTorchFileWriter", "prepare_multiprocessing_environment"),
    },
    "numpy": {
        *("load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromfile", "fromregex"),
        *("memmap", "DataSource", "recfromcsv", "recfromtxt", "test", "show_config", "info"),
    },
    "typing": {"ForwardRef", "evaluate_forward_ref", "get_type_hints"},
}

#: What is built in, and reads, writes, asks, or runs what is not in the file.
BARRED_NAMES = {
    *("open", "exec", "eval", "compile", "input", "breakpoint", "print", "help", "globals", "locals", "vars"),
    *("exit", "quit", "copyright", "credits", "license"),
}
#: Built in, and not to be handed on: what is called by another name cannot be looked at.
ONLY_CALLED = {"getattr", "setattr", "delattr", "hasattr"}
#: Names between underscores that lead to nothing else.
HARMLESS_INNER = {
    *("__all__", "__call__", "__class__", "__contains__", "__doc__", "__enter__", "__eq__", "__exit__", "__getitem__"),
    *("__init__", "__iter__", "__len__", "__main__", "__name__", "__post_init__", "__qualname__", "__repr__"),
    *("__setitem__", "__slots__", "__str__", "__version__"),
}
#: By this, code of others is run.
TRUST = "trust_remote_code"
#: What the handler of an endpoint may use besides: it lies there to load the model beside it.
HANDLER_MAY_USE = ("transformers.pipeline", TRUST)
#: Whatever they are attributes of: what leads from a value to the machine, or to what its module sees.
BARRED_ATTRIBUTES = {
    *("ag_code", "ag_frame", "cr_code", "cr_frame", "gi_code", "gi_frame", "tb_frame"),
    *("f_back", "f_builtins", "f_code", "f_globals", "f_locals"),
    *("builtins", "codecs", "ctypes", "http", "importlib", "inspect", "io", "linecache", "marshal", "multiprocessing"),
    *("os", "pathlib", "pickle", "posix", "runpy", "shutil", "socket", "subprocess", "sys", "tempfile", "urllib"),
    *("Popen", "import_module", "load_library", "urlopen"),
    *("dump", "export_chrome_trace", "from_file", "from_json_file", "get_config_dict", "push_to_hub", "read_file"),
    *("save", "to_json_file", "tofile"),
}
#: What a class may ask of the class that it derives from, and of nothing else: these know where a model lies.
ONLY_OF_SUPER = {"_save_pretrained", "from_pretrained", "save_pretrained", "save_vocabulary"}
#: The one file that a tokenizer reads beside its own, and writes where it is told to be saved.
READS = "tokenizers.Tokenizer.from_file"
WRITES_IN = "_save_pretrained"

_INNER = re.compile(r"__\w+__")

Fault = tuple[int, str]


class Module(NamedTuple):
    """A module's tree, and all that each name may stand for that an import binds somewhere in it."""

    tree: ast.Module
    bound: dict[str, set[str]]
    neighbours: Container[str]
    allowed: Container[str]

    def refuses(self, name: str) -> bool:
        """Whether a full name is none of what this module may use."""
        return name not in self.allowed and _is_refused(name)


def faults_of_module(path: Path, neighbours: Container[str], allowed: Container[str] = ()) -> list[str]:
    """Return what a travelling module does that it may not, each in one sentence.

    Args:
        path: The module.
        neighbours: The names of the modules beside it, which it may import by a dot.
        allowed: What else it may use, by full names; and `trust_remote_code`, if it may give that.
    """
    try:
        source = path.read_bytes()
        # What Python would read in another encoding may be other code than what anybody sees.
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        if encoding not in ("utf-8", "utf-8-sig"):
            return [f"{path.name} is written in {encoding}, and might be misread; write it in UTF-8."]
        tree = ast.parse(source)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return [f"{path.name} is no Python that can be read ({error}); save the model anew."]
    module = Module(tree, _bound(tree, path), neighbours, allowed)
    found = set(_faults(tree, module))
    advice = "code that strangers run computes, and does nothing else; take it out."
    return [f"{path.name}, line {line}: {what}; {advice}" for line, what in sorted(found)]


def _faults(tree: ast.AST, module: Module) -> Iterator[Fault]:
    """Every fault in a tree, whose parts know what they are parts of."""
    # The node, the node that holds it, and the name of the innermost function that it stands in.
    waiting: list[tuple[ast.AST, ast.AST, str]] = [(tree, tree, "")]
    while waiting:
        node, parent, function = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        for rule in _RULES.get(type(node), ()):
            yield from rule(node, parent, function, module)
        waiting += [(child, node, function) for child in ast.iter_child_nodes(node)]


# --- What imports bind ------------------------------------------------------------------------------------------------


def _bound(tree: ast.AST, path: Path | None = None) -> dict[str, set[str]]:
    """All that each name may stand for that is imported somewhere, be it by way of a neighbour."""
    bound: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                bound.setdefault(alias.asname or top, set()).add(alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                bound.setdefault(alias.asname or alias.name, set()).add(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.ImportFrom) and path is not None:
            theirs = _bound_in_neighbour(path.with_name(f"{node.module}.py"))
            for alias in node.names:
                bound.setdefault(alias.asname or alias.name, set()).update(theirs.get(alias.name, ()))
    return {name: meanings for name, meanings in bound.items() if meanings}


def _bound_in_neighbour(path: Path) -> dict[str, set[str]]:
    try:
        return _bound(ast.parse(path.read_bytes()))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return {}  # its own faults are said where it is looked at


def _meanings(node: ast.AST, module: Module) -> list[str]:
    """The full names of what is imported and then taken apart by dots; none of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    return [".".join([name, *parts]) for name in sorted(module.bound.get(node.id, ()))]


def _is_refused(name: str) -> bool:
    """Whether a full name is none of what may be used: neither an allowed module nor an allowed part of one."""
    if name in ALLOWED:
        return False
    home, _, part = name.rpartition(".")
    while home and home not in ALLOWED:
        home, _, part = home.rpartition(".")
    allowed = ALLOWED.get(home, set())
    if allowed is not None:
        return part not in allowed
    if part.startswith("_") or part in BARRED.get(home, ()):
        return True
    library = import_module(home)
    return not hasattr(library, part) or ismodule(getattr(library, part))


# --- The rules: what each says of a node of its kind ------------------------------------------------------------------


def _of_import(node: ast.Import, *_: object) -> Iterator[Fault]:
    for alias in node.names:
        top = alias.name.partition(".")[0]
        if top not in ALLOWED:
            yield node.lineno, f"imports {top}"
        elif alias.name not in ALLOWED:
            yield node.lineno, f"imports {alias.name}"


def _of_import_from(node: ast.ImportFrom, parent: ast.AST, function: str, module: Module) -> Iterator[Fault]:
    names = [alias.name for alias in node.names]
    if node.level:
        if node.level > 1 or node.module not in module.neighbours:
            yield node.lineno, f"imports {'.' * node.level}{node.module or ''}, which does not lie beside it"
    elif node.module and node.module.partition(".")[0] not in ALLOWED:
        yield node.lineno, f"imports {node.module.partition('.')[0]}"
    else:
        full = [f"{node.module}.{name}" for name in names if name != "*"]
        yield from ((node.lineno, f"imports {name}") for name in full if module.refuses(name))
    if "*" in names:
        yield node.lineno, f"imports all of {'.' * node.level}{node.module or ''}, whatever that is"


def _of_name(node: ast.Name, parent: ast.AST, function: str, module: Module) -> Iterator[Fault]:
    called = isinstance(parent, ast.Call) and parent.func is node
    if node.id in BARRED_NAMES or _is_barred_inner(node.id):
        yield node.lineno, f"uses {node.id}"
    elif node.id in ONLY_CALLED and not called:
        yield node.lineno, f"hands {node.id} on, to be called with anything"
    elif node.id == "type" and isinstance(node.ctx, ast.Load) and not (called or isinstance(parent, ast.Subscript)):
        yield node.lineno, "hands type on, to make classes with"
    elif not isinstance(parent, ast.Attribute):
        yield from _of_whole_module(node, module)


def _of_attribute(node: ast.Attribute, parent: ast.AST, function: str, module: Module) -> Iterator[Fault]:
    meanings = _meanings(node, module)
    refused = [name for name in meanings if module.refuses(name)]
    yield from ((node.lineno, f"uses {name}") for name in refused)
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    of_super = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
    if node.attr in ONLY_OF_SUPER and not of_super:
        yield node.lineno, f"uses {(meanings or [node.attr])[0]}, which may reach for files or the network"
    elif meanings == [READS] or (node.attr == "save" and function == WRITES_IN) or (node.attr == "__dict__" and own):
        pass
    elif _is_barred_attribute(node.attr) and not refused:
        yield node.lineno, f"uses {node.attr}"
    if not isinstance(parent, ast.Attribute):
        yield from _of_whole_module(node, module)


def _of_whole_module(node: ast.Name | ast.Attribute, module: Module) -> Iterator[Fault]:
    """What is used of a module cannot be seen where the module itself goes by another name."""
    for name in _meanings(node, module):
        if name in ALLOWED and isinstance(node.ctx, ast.Load):
            yield node.lineno, f"hands {name} on as a whole"


def _of_call(node: ast.Call, parent: ast.AST, function: str, module: Module) -> Iterator[Fault]:
    if TRUST not in module.allowed and any(keyword.arg == TRUST for keyword in node.keywords):
        yield node.lineno, f"uses {TRUST}"
    if not isinstance(node.func, ast.Name):
        return
    if node.func.id == "type" and (len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred)):
        yield node.lineno, "makes a class by type, whose parts cannot be seen"
    elif node.func.id in ONLY_CALLED:
        owner = node.args[0] if node.args else node
        name = node.args[1] if len(node.args) > 1 else None
        full = _meanings(owner, module)
        own = isinstance(owner, ast.Name) and owner.id == "self"
        named = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
        if full or isinstance(owner, ast.Starred) or not (named or (own and name is not None)):
            yield node.lineno, f"takes from {full[0] if full else ast.unparse(owner)} what a string names"
        elif named and _is_barred_attribute(named):
            yield node.lineno, f"uses {named}"


def _of_constant(node: ast.Constant, parent: ast.AST, function: str, module: Module) -> Iterator[Fault]:
    """A string may name what may not be named, or be an annotation, which some libraries evaluate."""
    text = node.value
    if not isinstance(text, str):
        return
    if text == TRUST or _is_barred_inner(text):
        yield node.lineno, f"uses {text}"
    if "(" not in text and "[" not in text:
        return
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    if any(isinstance(inside, ast.Call) for inside in ast.walk(tree)):
        yield from ((node.lineno, f"{what}, in a string") for _, what in _faults(tree, module))


def _of_match(node: ast.MatchClass, *_: object) -> Iterator[Fault]:
    if node.patterns or node.kwd_attrs:
        yield node.lineno, "takes attributes by a pattern"


def _is_barred_inner(name: str) -> bool:
    return name not in HARMLESS_INNER and _INNER.fullmatch(name) is not None


def _is_barred_attribute(name: str) -> bool:
    return name in BARRED_ATTRIBUTES or name.lstrip("_") in BARRED_ATTRIBUTES or _is_barred_inner(name)


_RULES: dict[type[ast.AST], tuple[Callable[..., Iterator[Fault]], ...]] = {
    ast.Import: (_of_import,),
    ast.ImportFrom: (_of_import_from,),
    ast.Name: (_of_name,),
    ast.Attribute: (_of_attribute,),
    ast.Call: (_of_call,),
    ast.Constant: (_of_constant,),
    ast.MatchClass: (_of_match,),
}
