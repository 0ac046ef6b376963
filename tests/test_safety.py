"""Settings of a model that name code, files or repositories are refused wherever a model is read, with the reason."""

import json

import pytest
import tiny_encoders as tiny

from hf_xorner import Tagger
from hf_xorner.export.onnx import export_onnx
from hf_xorner.export.package import export_package
from hf_xorner.export.runtime import OnnxTagger
from hf_xorner.hub import check_folder
from hf_xorner.hub.card import write_card
from hf_xorner.vectors.distill import read_encoder

pytest_plugins = "fake_hub"

CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"
CODE = {"AutoConfig": "/evil/code.Config", "AutoModelForTokenClassification": "/evil/code.Model"}
KERNEL = "owner/kernel"


def encoder(**settings):
    """Return the settings of a model with an encoder."""
    return {"context_encoder": {"model_type": "bert", **settings}, "context_layers": [0], "max_word_pieces": 4}


#: The file, its hostile settings, and the reason of the refusal.
HOSTILE = [
    (
        CONFIG,
        {"model_type": "detr", "backbone": "owner/model", "use_pretrained_backbone": True},
        "model_type='detr' is",
    ),
    (CONFIG, {"model_type": "foreign", "auto_map": CODE}, "model_type='foreign' is not one of"),
    (CONFIG, {"auto_map": CODE}, "auto_map=.*evil.* is refused"),
    (CONFIG, {"auto_map": {"AutoConfig": "owner/code--configuration_grn.GrnConfig"}}, "auto_map=.*owner.* is refused"),
    (CONFIG, {"transformers_weights": "adapter_model.bin"}, "transformers_weights='adapter_model.bin' is refused"),
    (CONFIG, {"configuration_files": ["config.5.0.0.json"]}, r"configuration_files=\[.* is refused"),
    (CONFIG, {"custom_pipelines": {"ner": {"impl": "evil.Pipeline"}}}, "custom_pipelines=.* is refused"),
    (CONFIG, {"quantization_config": {"quant_method": "bitsandbytes"}}, "quantization_config=.* is refused"),
    (CONFIG, {"attn_implementation": KERNEL}, "attn_implementation='owner/kernel' is refused"),
    (CONFIG, {"_attn_implementation_internal": KERNEL}, "_attn_implementation_internal='owner/kernel' is refused"),
    (CONFIG, encoder(attn_implementation=KERNEL), "attn_implementation='owner/kernel' is refused"),
    (CONFIG, encoder(quantization_config={}), "quantization_config=.* is refused"),
    (CONFIG, encoder(model_type="detr", backbone="owner/backbone", use_pretrained_backbone=True), "context_encoder"),
    (CONFIG, encoder(model_type="foreign", auto_map=CODE), "context_encoder"),
    (CONFIG, encoder(num_hidden_layers=1_000_000), "context_encoder"),
    (TOKENIZER, {"auto_map": {"AutoTokenizer": ["/evil/code.Tokenizer", None]}}, "auto_map=.*evil.* is refused"),
    (TOKENIZER, {"piece_tokenizer_file": "/etc/passwd"}, "piece_tokenizer_file='/etc/passwd' is refused"),
]


def spacy_tagger(folder):
    pytest.importorskip("spacy")
    from hf_xorner.integrations.spacy import TaggerComponent

    return TaggerComponent(None, "ner", str(folder)).tagger


ENTRIES = {
    "Tagger": lambda folder, out: Tagger.from_pretrained(str(folder)),
    "OnnxTagger": lambda folder, out: OnnxTagger.from_pretrained(folder),
    "onnx": lambda folder, out: export_onnx(str(folder), out),
    "package": lambda folder, out: export_package(str(folder), out, "my_ner"),
    "publish": lambda folder, out: check_folder(folder),
    "card": lambda folder, out: write_card(folder, overwrite=True),
    "spacy": lambda folder, out: spacy_tagger(folder),
    "encoder": lambda folder, out: read_encoder(str(folder)),
}


@pytest.fixture
def offline(monkeypatch):
    """Fail at any request to the Hub, and at any process that would run the code of a model."""

    def fail(*arguments, **options):
        pytest.fail(f"was called with {arguments}")

    monkeypatch.setattr("socket.socket.connect", fail)
    for module in ("card", "checks"):
        monkeypatch.setattr(f"hf_xorner.hub.{module}.run_without_package", fail)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_refuses_hostile_settings_with_the_reason(entry, folder, tmp_path, offline):
    if entry == "encoder":
        folder = tiny.save_encoder(tmp_path / "encoder")
    for file, settings, reason in HOSTILE:
        if entry == "encoder" and {"context_encoder", "auto_map"} & settings.keys() and "model_type" not in settings:
            continue  # other fields, and code that no encoder is loaded with, are not read
        if entry == "encoder" and file == TOKENIZER:
            continue
        if entry == "OnnxTagger" and reason == "context_encoder":
            continue  # the encoder is in the graph
        path = folder / file
        content = path.read_text()
        path.write_text(json.dumps(json.loads(content) | settings))
        with pytest.raises(ValueError, match=reason) as error:
            ENTRIES[entry](folder, tmp_path / "out")
        assert "\n" not in str(error.value)
        path.write_text(content)
    if entry in ("Tagger", "encoder", "onnx"):
        ENTRIES[entry](folder, tmp_path / "out")


def test_an_adapter_in_a_folder_is_refused(folder, tmp_path, offline):
    """With peft, transformers would load the model that the adapter names."""
    for path, read in ((folder, ENTRIES["Tagger"]), (tiny.save_encoder(tmp_path / "encoder"), ENTRIES["encoder"])):
        (path / "adapter_config.json").write_text('{"base_model_name_or_path": "owner/model"}')
        with pytest.raises(ValueError, match=r"adapter_config\.json is refused"):
            read(path, tmp_path)


def test_a_config_larger_than_its_weights_is_refused_before_it_is_built(folder, tmp_path, offline, monkeypatch):
    """16,384 units alone are 8 GB."""
    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", lambda *_, **__: pytest.fail("was built"))
    encoder = tiny.save_encoder(tmp_path / "encoder")
    for path, read in ((folder, ENTRIES["Tagger"]), (encoder, ENTRIES["encoder"])):
        for changed in ({"hidden_size": 1 << 14, "num_attention_heads": 1}, {"num_hidden_layers": 100}):
            content = (path / CONFIG).read_text()
            (path / CONFIG).write_text(json.dumps(json.loads(content) | changed))
            with pytest.raises(ValueError, match=r"config\.json describes a model of [\d,]+ numbers"):
                read(path, tmp_path)
            (path / CONFIG).write_text(content)
