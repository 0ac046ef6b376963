"""The common tests of transformers over every architecture, its config and its tokenizer.

They come from the source distribution of the installed version, which is fetched when these tests are run by name
(`pytest -m slow tests/test_transformers_mixins.py`). It holds the mixins for models, configs and tokenizers, but no
subfolder of transformers' tests: neither the tests of exporters and of generation, nor those that PipelineTesterMixin
runs (`tests/pipelines`). The stock pipeline is tested in test_pipeline.py.
"""

import copy
import importlib
import re
import subprocess
import sys
import tarfile
import unittest
from importlib.metadata import version
from types import ModuleType

import helpers
import pytest
import torch
from conftest import ARCHITECTURES, SENTENCES, build_model

from hf_xorner import WordCharTokenizer

pytestmark = pytest.mark.slow

PACKAGE = "transformers_tests"
TRANSFORMERS = version("transformers")

#: What the mixins import from subfolders that the source distribution leaves out.
LEFT_OUT = {
    "__init__.py": "",
    "exporters/test_export.py": "class ExportTesterMixin:\n    pass\n",
    "generation/test_utils.py": "class GenerationTesterMixin:\n    pass\n",
    "utils/test_configuration_utils.py": (
        'config_common_kwargs = {"return_dict": False, "output_hidden_states": True, "output_attentions": True, '
        '"dtype": "float16", "chunk_size_feed_forward": 5, "architectures": ["Tagger"], "is_encoder_decoder": True}\n'
    ),
    "fixtures/sample_text.txt": "\n\n".join(map(" ".join, SENTENCES)),
}

#: Tests that do not apply, and why.
NOT_FOR_MODELS = {
    "test_retain_grad_hidden_states_attentions": (
        "Sentences are encoded right-padded, and hidden states returned in the order of the input: those are copies, "
        "which no gradient passes. Of the encoder's own states it does, by hooks on its modules."
    )
}
_PAIRS = "The tokenizer reads single texts and refuses pairs (test_tokenizer.py)."
NOT_FOR_TOKENIZERS = {
    "test_alignment_methods": _PAIRS,
    "test_call": _PAIRS,
    "test_mask_output": _PAIRS,
    "test_maximum_encoding_length_pair_input": _PAIRS,
    "test_number_of_added_tokens": _PAIRS,
    "test_offsets_mapping": _PAIRS,
    "test_sequence_ids": _PAIRS,
    "test_special_tokens_mask_input_pairs": _PAIRS,
    "test_token_type_ids": "Single texts have no types of tokens.",
    "test_tokenize_special_tokens": "Special tokens in a text are text, added ones included.",
    "test_batch_encode_dynamic_overflowing": "Wants every column in two dimensions; char_ids has three.",
    "test_maximum_encoding_length_single_input": (
        "Wants the warning that a text of more than model_max_length tokens fails in the model; here it does not."
    ),
}

#: Hidden states besides the word features.
LAYERS = dict(zip(ARCHITECTURES, (2, 2, 3, 2, 1, 2, 4, 0), strict=True))


@pytest.fixture(scope="session")
def mixins(request):
    """The modules of transformers' tests by name, as one package."""
    folder = request.config.cache.mkdir(f"transformers-{TRANSFORMERS}")
    archive = folder / f"transformers-{TRANSFORMERS}.tar.gz"
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        command += ["--dest", str(folder), f"transformers=={TRANSFORMERS}"]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if fetched.returncode:
            pytest.skip(f"the source distribution cannot be fetched: {fetched.stderr.strip().splitlines()[-1]}")
    pytest.importorskip("parameterized", reason="the tests of transformers need it: pip install 'hf_xorner[test]'")
    package = folder / PACKAGE
    with tarfile.open(archive) as files:
        for member in files.getmembers():
            *_, inner, name = f"/{member.name}".split("/")
            if inner == "tests" and name.endswith(".py"):
                member.name = name
                files.extract(member, package, filter="data")
    for name, text in LEFT_OUT.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in package.glob("*.py"):
        for marker in re.findall(r"\bmark\.(\w+)", path.read_text(encoding="utf-8")):
            request.config.addinivalue_line("markers", f"{marker}: of transformers")
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(folder))


class SmallModel:
    """The requirements of the mixin for models: sizes, a config and inputs."""

    batch_size, seq_length, is_training = 3, 5, True
    num_hidden_layers, num_attention_heads = 1, 2

    def __init__(self, kind, tokenizer):
        model = build_model(kind, tokenizer)
        self.config, self.hidden_size = model.config, model.features.output_size
        self.expected_num_hidden_layers = 1 + LAYERS[kind]

    def get_config(self):
        return copy.deepcopy(self.config)

    def prepare_config_and_inputs_for_common(self):
        sentences = helpers.random_sentences(self.config, [self.seq_length] * self.batch_size)
        return self.get_config(), helpers.pad(sentences)


def case_for_model(kind, tokenizer, modeling: ModuleType, configuration: ModuleType):
    # It takes the field `decoder` for a config inside the config.
    modeling.set_config_for_less_flaky_test = lambda config: None

    class ModelTest(modeling.ModelTesterMixin, unittest.TestCase):
        all_model_classes = (type(build_model(kind, tokenizer)),)
        has_attentions = kind == "att-bilstm-cnn"
        test_resize_embeddings = False

        def setUp(self):
            self.model_tester = SmallModel(kind, tokenizer)

        def _prepare_for_class(self, inputs_dict, model_class, return_labels=False):
            labels = {"labels": torch.zeros(SmallModel.batch_size, SmallModel.seq_length, dtype=torch.long)}
            return copy.deepcopy(inputs_dict) | (labels if return_labels else {})

        def test_config(self):
            config_class = type(self.model_tester.config)
            tester = configuration.ConfigTester(self, config_class, common_properties=["hidden_size"], word_dim=37)
            tester.run_common_tests()

    return ModelTest


def failures(case, not_applicable):
    """The tests of a case that fail, with the last line of each failure; those that do not apply are skipped."""
    for name, reason in not_applicable.items():
        setattr(case, name, unittest.skip(reason)(getattr(case, name)))
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun - len(result.skipped) > 5
    return {test.id(): text.strip().splitlines()[-1] for test, text in result.failures + result.errors}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_and_its_config_pass(kind, tokenizer, mixins):
    case = case_for_model(kind, tokenizer, mixins("test_modeling_common"), mixins("test_configuration_common"))
    assert failures(case, NOT_FOR_MODELS) == {}


@pytest.mark.parametrize(
    ("module", "mixin"),
    [
        ("test_tokenization_common", "TokenizerTesterMixin"),
        ("test_tokenizers_backend_mixin", "TokenizersBackendTesterMixin"),
    ],
)
def test_the_tokenizer_passes_the_mixins(module, mixin, mixins, tmp_path):
    words = "This is a test Hello hey how are you doing".split()
    tokenizer = WordCharTokenizer.from_corpus([*SENTENCES, words], max_word_chars=10)
    build_model("bilstm-cnn", tokenizer).save_pretrained(tmp_path)  # AutoTokenizer finds the class by its config
    tokenizer.save_pretrained(tmp_path)
    fields = {"tokenizer_class": WordCharTokenizer, "from_pretrained_id": str(tmp_path), "test_seq2seq": False}
    case = type("TokenizerTest", (getattr(mixins(module), mixin), unittest.TestCase), fields)
    failed = failures(case, {name: reason for name, reason in NOT_FOR_TOKENIZERS.items() if hasattr(case, name)})
    # Two tests of the second module train a new tokenizer, which is refused.
    refused = "NotImplementedError: Build a tokenizer with WordCharTokenizer.from_corpus."
    assert list(failed.values()) == [refused] * (2 * (mixin == "TokenizersBackendTesterMixin"))
