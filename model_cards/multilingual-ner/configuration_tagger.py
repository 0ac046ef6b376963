"""The configuration fields that every tagger shares."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import fields
from typing import Any, ClassVar

from transformers import AutoConfig, PreTrainedConfig

from .word_ids import RESERVED_CHARACTER_TYPES, WIDTHS

#: Bounds of fields: sizes, units of a layer and widths of its windows, numbers of layers, dropout.
SIZE, UNITS, LAYERS, RATE = (0, 1 << 14), (1, 1 << 14), (1, 100), (0, 0.99)
_WORDS, _WINDOW, _OVERLAP, _PIECES = (0, 1 << 27), (1, 1 << 20), (0, 1 << 20), (0, 1 << 24)
_MOST_LABELS, _LONGEST_LIST = 4096, 100

#: Types in transformers of text encoders that return one state per piece.
ENCODERS = (
    *("albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "eurobert"),
    *("gpt2", "megatron-bert", "modernbert", "mpnet", "nomic_bert", "rembert", "roberta", "roberta-prelayernorm"),
    *("roc_bert", "xlm-roberta", "xlm-roberta-xl"),
)

_FROM_TOKENIZER = "take the config's fields from the tokenizer: Config(**tokenizer.model_fields(), …)"


def encoder_config(settings: dict[str, Any]) -> PreTrainedConfig:
    """The config of a pretrained encoder whose type is in ENCODERS.

    Only the fields of its config class are read, so nothing that names code, a repository or kernels.

    Raises:
        ValueError: If the type is not in ENCODERS, or a number is too large for a real model.
    """
    model_type = settings.get("model_type")
    if model_type not in ENCODERS:
        raise ValueError(f"context_encoder: model_type={model_type!r} is not one of {', '.join(ENCODERS)}.")
    names = {entry.name for entry in fields(AutoConfig.for_model(model_type))}
    config = AutoConfig.for_model(model_type, **{name: settings[name] for name in names & settings.keys()})
    for name, most in (("num_hidden_layers", 100), ("hidden_size", 1 << 14), ("intermediate_size", 1 << 16)):
        if getattr(config, name, 0) > most:
            raise ValueError(f"context_encoder: {name}={getattr(config, name)} must be at most {most}.")
    return config


class TaggerConfig(PreTrainedConfig):
    """Shared fields of all taggers: vocabularies, labels, word features, decoder and loss.

    Args:
        vocab_size: Number of word ids; 0 pads, 1 is the unknown word.
        word_dim: Size of a word vector (li2020: 300 for GloVe, 400 for the Twitter vectors).
        pretrained_words: The trained word vectors start from pretrained ones, and words not seen in training have one,
            too.
        static_dim: Size of a second, frozen vector of each word; 0 for none.
        static_bits: Bits per number of the frozen vectors: 32, 16, or 8 or 4 with a scale for each vector.
        trained_vocab_size: Ids from here on belong to words with a pretrained vector that were not seen in training.
            Without `pretrained_words`, they have the trained vector of the unknown word. None: all words were seen.
        first_singleton_id: Ids from here up to `trained_vocab_size` belong to words seen once in training.
        singleton_dropout: Probability of replacing such a word by the unknown word in training (lample2016: 0.5).
        char_vocab_size: Number of character ids; 0 pads, 1 is unknown, 2 to 5 are unknown characters of a known type.
        char_types: One letter per character id (see `CHARACTER_TYPE_CODES`), for casing and character-type features.
            Empty: only the reserved ids have a type.
        max_word_chars: Characters to which words are truncated or padded; the width of `char_ids` (li2020: 20;
            lample2016 does not truncate words: 200, which exceeds all but the longest URLs).
        char_features: The character encoder: "cnn", "lstm", which skips unknown characters (lample2016), or "none".
        char_dim: Size of a character vector (li2020: 25).
        char_filters: Filters of the character CNN for each width (li2020: 20).
        char_widths: Widths of the character CNN (li2020: 1, 2, 3).
        char_type_features: The character CNN also reads a one-hot type of each character (li2020).
        char_activation: Nonlinearity of the character CNN before its maximum, "none" or "tanh" (ma2016's program).
        char_bias: The filters of the character CNN have a bias.
        char_windows: Windows over which the character CNN takes its maximum. "all": all in a word's row of
            `max_word_chars`, where padding has a trained vector (li2020). "centred": those centred on a character of
            the word, with zeros beyond its ends (chen2019, eq. 2).
        char_padding: More padding on either side of the row, for "all" windows (ma2016's program: 2).
        char_dropout: Dropout on the vectors of characters, separate for each occurrence of a word (ma2016: 0.5).
        char_lstm_size: Units of the character LSTM in each direction (lample2016: 25).
        char_lstm_cell: The cell of the character LSTM, "standard" or "coupled" (lample2016).
        casing_features: Add a one-hot vector of the word's casing (li2020).
        shape_dim: Size of a learned vector of the word's shape: all capitals, first capital, some capital, no capital
            (strubell2017: 5); 0 for none.
        feature_dropout: Dropout on the concatenated features of each word (lample2016, ma2016, chen2019: 0.5).
        max_word_pieces: Maximum number of pieces of a word, the width of `piece_ids`; 0 for none.
        piece_vocab_size: Vocabulary size of the encoder of these pieces.
        composed_dim: Size of a frozen vector of each word, composed of its pieces' vectors; 0 for none.
        composed_bits: Bits per number of the pieces' vectors, as in `static_bits`.
        context_encoder: The config of a pretrained encoder whose states are features of the words (ELMo's role in
            chen2019), as a dictionary with its `model_type`; None for none.
        context_layers: The hidden states that are averaged; 0 is the input of the encoder's first layer.
        context_frozen: Freeze the encoder.
        context_window: Pieces, special ones included, that the encoder reads at once. Longer sentences are read in
            overlapping windows; a piece's state comes from the window in which it is nearest to the middle.
        context_overlap: Pieces that two neighbouring windows share.
        context_prefix: The encoder's ids of the special pieces before a sentence.
        context_suffix: The encoder's ids of the special pieces after a sentence.
        decoder: "softmax" (each word is labelled independently) or "crf" (all words of a sentence jointly).
        conditioned_transitions: The CRF's transition scores depend on the words (ma2016).
        crf_emissions: A CRF with conditioned transitions also scores single tags. False: it only scores pairs of tags
            (ma2016). A CRF with constant transitions always scores single tags.
        crf_boundaries: Which ends of a sentence the CRF scores: "both" (lample2016), "start" (ma2016) or "none".
        constrain_transitions: Forbid invalid transitions in the CRF, such as B-PER before O in BIOES.
        tag_scheme: The tags inside the model, "bioes" or "iob2"; its labels are IOB2 in either case.
        malformed_spans: "drop" decoded spans that are not B I* E or S of one type, or B I* in IOB2 (li2020), or
            "repair" them: S is read as B, E as I, then as the conlleval script does.
        score_temperature: Scores are divided by it before they become probabilities (Guo et al., 2017); the decoded
            labels do not depend on it.
        loss_reduction: "token" averages over labelled tokens (li2020), "sentence" over sentences (ma2016, chen2019),
            "sum" is the sum over sentences (lample2016).
        initializer: Initialisation of word, character and shape vectors: "normal", N(0, initializer_range) (li2020),
            "uniform", U(−√(3 / size), √(3 / size)) (ma2016), "kaiming", U(−√(6 / size), √(6 / size)) (chen2019), or
            "glorot", √(6 / (size + number of vectors)), also for the scores of transitions, which otherwise start at 0
            (lample2016's program). Weights of linear layers and convolutions are Kaiming-uniform with "kaiming", else
            Glorot-uniform.
        initializer_range: Standard deviation of "normal" (li2020: 0.1).
    """

    keys_to_ignore_at_inference = ["hidden_states", "attentions"]
    #: BibTeX of the paper that an architecture comes from.
    citation = ""
    #: Allowed values of the fields that this class adds.
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "decoder": ("softmax", "crf"),
        "loss_reduction": ("token", "sentence", "sum"),
        "tag_scheme": ("bioes", "iob2"),
        "malformed_spans": ("drop", "repair"),
        "char_features": ("cnn", "lstm", "none"),
        "char_activation": ("none", "tanh"),
        "char_windows": ("all", "centred"),
        "char_lstm_cell": ("standard", "coupled"),
        "crf_boundaries": ("both", "start", "none"),
        "initializer": ("normal", "uniform", "kaiming", "glorot"),
        "static_bits": (32, 16, 8, 4),
        "composed_bits": (32, 16, 8, 4),
    }
    #: Least and greatest values of the fields that this class adds, also of the numbers in lists. Real models are far
    #: from the greatest; beyond them, loading a file would take all memory or hours.
    bounds: ClassVar[dict[str, tuple[float, float]]] = {
        **dict.fromkeys(("vocab_size", "trained_vocab_size", "first_singleton_id"), _WORDS),
        **dict.fromkeys(("word_dim", "static_dim", "char_dim", "char_filters", "char_padding", "shape_dim"), SIZE),
        **dict.fromkeys(("composed_dim", "context_layers"), SIZE),
        **dict.fromkeys(("char_widths", "char_lstm_size"), UNITS),
        **dict.fromkeys(("piece_vocab_size", "context_prefix", "context_suffix"), _PIECES),
        **dict.fromkeys(("char_dropout", "feature_dropout"), RATE),
        "singleton_dropout": (0, 1),
        "char_vocab_size": (0, 1 << 21),
        **WIDTHS,
        "context_window": _WINDOW,
        "context_overlap": _OVERLAP,
        "score_temperature": (0.01, 100),
        "initializer_range": (0, 100),
    }
    #: Fields of this class that must be odd, so that windows are centred on a word.
    odd: ClassVar[tuple[str, ...]] = ()

    id2label: dict[int, str] | None = None
    label2id: dict[str, int] | None = None
    vocab_size: int = 2
    pad_token_id: int | None = 0
    word_dim: int = 300
    pretrained_words: bool = False
    static_dim: int = 0
    static_bits: int = 32
    trained_vocab_size: int | None = None
    first_singleton_id: int | None = None
    singleton_dropout: float = 0.0
    char_vocab_size: int = len(RESERVED_CHARACTER_TYPES)
    char_types: str = ""
    max_word_chars: int = 20
    char_features: str = "cnn"
    char_dim: int = 25
    char_filters: int = 20
    char_widths: list[int] | tuple[int, ...] = (1, 2, 3)
    char_type_features: bool = True
    char_activation: str = "none"
    char_bias: bool = False
    char_windows: str = "all"
    char_padding: int = 0
    char_dropout: float = 0.0
    char_lstm_size: int = 25
    char_lstm_cell: str = "standard"
    casing_features: bool = True
    shape_dim: int = 0
    feature_dropout: float = 0.0
    max_word_pieces: int = 0
    piece_vocab_size: int = 0
    composed_dim: int = 0
    composed_bits: int = 32
    context_encoder: dict[str, Any] | None = None
    context_layers: list[int] | tuple[int, ...] = ()
    context_frozen: bool = True
    context_window: int = 512
    context_overlap: int = 128
    context_prefix: list[int] | tuple[int, ...] = ()
    context_suffix: list[int] | tuple[int, ...] = ()
    decoder: str = "softmax"
    conditioned_transitions: bool = False
    crf_emissions: bool = True
    crf_boundaries: str = "both"
    constrain_transitions: bool = False
    tag_scheme: str = "bioes"
    malformed_spans: str = "drop"
    score_temperature: float = 1.0
    loss_reduction: str = "token"
    initializer: str = "normal"
    initializer_range: float = 0.1

    def __post_init__(self, **kwargs: Any) -> None:
        """Fill in what can be derived and check all fields."""
        if self.id2label is None and self.label2id is not None:
            self.id2label = {index: label for label, index in self.label2id.items()}
        super().__post_init__(**kwargs)
        if self.id2label is not None:
            self.label2id = {label: index for index, label in self.id2label.items()}
        self._check_values()
        if not self.char_types:
            self.char_types = RESERVED_CHARACTER_TYPES.ljust(self.char_vocab_size, ".")
        self._check_characters()
        if self.pairs_only and self.crf_boundaries == "none":
            raise ValueError(
                'crf_emissions=False needs crf_boundaries="start" or "both"; otherwise nothing scores the first word.'
            )
        if (self.composed_dim or self.context_encoder) and not self.max_word_pieces:
            raise ValueError(
                "composed_dim and context_encoder need a tokenizer that cuts words into pieces; "
                f"build it with pieces=…, and {_FROM_TOKENIZER}."
            )
        if self.context_encoder is not None:
            self._check_context()

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Read a saved config; `id2label` may give labels new names, but not new numbers, which the weights have."""
        given = {} if kwargs.get("ignore_mismatched_sizes") else kwargs.get("id2label") or {}
        saved = {label: int(number) for number, label in config_dict.get("id2label", {}).items()} if given else {}
        if moved := [label for number, label in given.items() if saved.get(label, int(number)) != int(number)]:
            raise ValueError(
                f"id2label: the weights have {moved[0]} as label {saved[moved[0]]}; leave id2label out (the option "
                "types renames types of data), or add ignore_mismatched_sizes=True to train the weights anew."
            )
        return super().from_dict(config_dict, **kwargs)

    def _check_characters(self) -> None:
        if len(self.char_types) != self.char_vocab_size:
            raise ValueError(
                f"char_types has {len(self.char_types)} letters for char_vocab_size={self.char_vocab_size} characters; "
                f"{_FROM_TOKENIZER}."
            )
        if self.char_features != "cnn":
            return
        if not self.char_widths:
            raise ValueError('char_widths=[] must be one width or more; char_features="none" reads no characters.')
        if self.char_windows == "all" and self.max_word_chars + 2 * self.char_padding < max(self.char_widths):
            raise ValueError(f"max_word_chars={self.max_word_chars} is less than the character CNN's widest filter.")

    def _check_context(self) -> None:
        encoder = encoder_config(self.context_encoder or {})
        self.context_encoder = {
            name: value
            for name, value in encoder.to_dict().items()
            if name not in ("_name_or_path", "dtype", "transformers_version")
        }
        last = encoder.num_hidden_layers
        if not self.context_layers or max(self.context_layers) > last:
            layers = list(self.context_layers)
            raise ValueError(f"context_layers={layers}: the encoder has the layers 0 to {last}; choose among them.")
        room = self.context_window - len(self.context_prefix) - len(self.context_suffix)
        if self.context_overlap >= room:
            raise ValueError(
                f"context_overlap={self.context_overlap} must be smaller than the {room} pieces that "
                f"context_window={self.context_window} leaves for words."
            )

    def _check_values(self) -> None:
        """Check the bounds of numbers, and choices; defaults show the types of fields."""
        defaults = {entry.name: entry.default for entry in fields(self)}
        for name, default in defaults.items():
            if isinstance(default, bool) and not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be true or false.")
        for name, (least, most) in self._declared("bounds").items():
            value, default = getattr(self, name), defaults[name]
            if isinstance(value, int) and isinstance(default, tuple):
                setattr(self, name, value := (value,))
            if value is None and default is None:
                continue
            values = value if isinstance(value, (list, tuple)) and isinstance(default, tuple) else [value]
            number_type, whole = ((int, float), "") if isinstance(default, float) else (int, ", and whole")
            numbers = all(isinstance(number, number_type) and least <= number <= most for number in values)
            if len(values) > _LONGEST_LIST or not numbers or any(isinstance(number, bool) for number in values):
                raise ValueError(f"{name}={repr(value)[:100]} must be from {least} to {most:,}{whole}.")
            if name in self.odd and not all(number % 2 for number in values):
                raise ValueError(f"{name}={value} must be odd, so that windows are centred on a word.")
        if sorted(self.id2label or ()) != [*range(len(self.id2label or ()))]:
            raise ValueError(f"id2label has the ids {sorted(self.id2label or ())}; number the labels from 0.")
        if len(self.id2label or ()) > _MOST_LABELS:
            raise ValueError(f"id2label has {len(self.id2label or ()):,} labels, more than {_MOST_LABELS:,}.")
        for name, choices in self._declared("choices").items():
            if (value := getattr(self, name)) not in choices:
                names = ", ".join(map(repr, choices))
                raise ValueError(f"{name}={value!r} is unknown to {type(self).__name__}; choose one of {names}.")

    @classmethod
    def _declared(cls, name: str) -> ChainMap[str, Any]:
        """The `bounds` or `choices` of the fields of this class and its bases."""
        return ChainMap(*(vars(base).get(name, {}) for base in cls.__mro__))

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> TaggerConfig:
        """Return this config; transformers would mistake the field `decoder` for a nested config."""
        return self

    @property
    def pairs_only(self) -> bool:
        """True if the decoder is a CRF that only scores pairs of tags."""
        return self.decoder == "crf" and self.conditioned_transitions and not self.crf_emissions

    @property
    def labels(self) -> list[str]:
        """The public labels in the order of their ids."""
        names = self.id2label or {}
        return [names[index] for index in range(self.num_labels)]


# Saved models include their code, so that they load where this package is not installed.
TaggerConfig.register_for_auto_class()


class SelfAttentionConfig(TaggerConfig):
    """The self-attention of li2020, in windows for long sentences.

    Args:
        num_attention_heads: Heads of the self-attention (li2020: 5).
        attention_head_dim: Size of a head (li2020: 40).
        attention_window: Words of longer sentences attend within overlapping windows of this size, at linear cost;
            shorter ones attend to the whole sentence, as in the paper.
        attention_overlap: Words that two neighbouring windows share.
        attention_initializer: The Glorot-uniform weights of queries, keys and values are drawn for each "head"
            (li2020), or for all heads as one "matrix".
    """

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"attention_initializer": ("head", "matrix")}
    bounds: ClassVar = {
        "num_attention_heads": SIZE,
        "attention_head_dim": SIZE,
        "attention_window": _WINDOW,
        "attention_overlap": _OVERLAP,
    }

    num_attention_heads: int = 5
    attention_head_dim: int = 40
    attention_window: int = 512
    attention_overlap: int = 128
    attention_initializer: str = "matrix"

    def __post_init__(self, **kwargs: Any) -> None:
        """Check the shared fields and these."""
        super().__post_init__(**kwargs)
        if self.attention_overlap >= self.attention_window:
            raise ValueError(
                f"attention_overlap={self.attention_overlap} must be smaller than "
                f"attention_window={self.attention_window}."
            )
