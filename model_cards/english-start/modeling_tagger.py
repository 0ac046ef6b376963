"""The base class of all taggers. An architecture adds its encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput, can_return_tuple, logging

from .configuration_tagger import TaggerConfig
from .decoders import Axes, Decoded, NoEmissions, build_decoder
from .features import WordFeatures
from .frozen_vectors import draw_vectors
from .layers import cheap_to_read, length_mask
from .recurrent import BiLayer, DistinctWords
from .tags import IGNORED, TagSpace

logger = logging.get_logger(__name__)

#: The features of words: a tensor (B, T, d), or a table of distinct words.
Features = Tensor | DistinctWords

#: Margin of the logit of a decoded label above all others, so that argmax is the decoded path.
MARGIN = 1e-3


@dataclass
class TaggerOutput(ModelOutput):
    """The output of a tagger.

    Args:
        loss: Scalar, if labels were given.
        logits: (B, T, labels) over the public labels, float32. Their argmax is the decoded path and their softmax the
            decoder's posterior, except that a label more probable than the decoded one is lowered to just below it.
            None in training with labels.
        hidden_states: With `output_hidden_states`: the word features (B, T, d), then the states (B, T, size) of each
            layer of the encoder; the last are the input of the classifier. Sizes differ; values at padding are
            arbitrary.
        attentions: With `output_attentions`, one tensor (B, heads, T, T) for each layer of attention; None for models
            without attention.
        path: (B, T), without `output_logits`: the decoded labels.
        path_log_probs: (B, T, 2), with `output_path_log_probs`: log probability of a word's decoded inner tag,
            marginal and given the decoded tag of the previous word. The marginal of a span's first word and the
            conditionals of its other words add up to the exact log probability of the span.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    path: Tensor | None = None
    path_log_probs: Tensor | None = None


class Encoded(NamedTuple):
    """The output of an encoder for right-padded sentences; values at padding are arbitrary."""

    states: Tensor  # (B, T, output_size), from which tags are decoded
    hidden_states: tuple[Tensor, ...] = ()  # (B, T, size) of each layer, if requested; the last is `states`
    attentions: tuple[Tensor, ...] | None = None  # (B, heads, T, T) of each layer of attention, if requested
    earlier: tuple[Tensor, ...] = ()  # (B, T, output_size) each: states that also have a loss in training
    penalty: Tensor | None = None  # a scalar that is added to the loss in training

    def with_context(self, context: Tensor, weights: Tensor | None) -> Encoded:
        """[states ; context] of a layer of self-attention above these states."""
        states = torch.cat([self.states, context], -1)
        hidden_states = (*self.hidden_states, states) if self.hidden_states else ()
        return Encoded(states, hidden_states, None if weights is None else (weights,))


class Encoder(nn.Module):
    """The part in which architectures differ: features (B, T, d) → states (B, T, output_size)."""

    output_size: int

    @property
    def first_layer(self) -> BiLayer | None:
        """The recurrent layer that reads the features, if one does; they may then be its `DistinctWords`."""
        return None

    def forward(
        self, features: Any, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """Encode features (B, T, d) of right-padded sentences of lengths (B,)."""
        raise NotImplementedError


class TaggerForTokenClassification(PreTrainedModel):
    """features → encoder → scores of inner tags → decoder."""

    config_class = TaggerConfig
    encoder_class: ClassVar[type[Encoder]] = Encoder
    base_model_prefix = ""
    main_input_name = "input_ids"

    def __init__(self, config: TaggerConfig) -> None:
        if self.encoder_class is Encoder:
            raise TypeError("this is the base class of all taggers; use AutoModelForTokenClassification.")
        super().__init__(config)
        self.tags = TagSpace(config.labels, config.tag_scheme)
        self.features = WordFeatures(config)
        self.encoder = self.encoder_class(config, self.features.output_size)
        self.build_head(config)
        # Modules that a device map must not split.
        self._no_split_modules = [type(part).__name__ for part in (self.features, self.encoder, self.decoder)]
        self.post_init()
        self.freeze()

    def follow_labels(self) -> None:
        """Rename the tags if `config.id2label` has changed since the model was built.

        Raises:
            ValueError: If the new labels need other weights.
        """
        if torch.compiler.is_compiling() or self.config.labels == self.tags.labels:
            return
        try:
            self.tags.rename(self.config.labels)
        except ValueError as error:
            raise ValueError(
                f"config.id2label has changed since the model was built, and the weights do not fit: {error} Load the "
                "model with from_pretrained(..., id2label=..., label2id=..., ignore_mismatched_sizes=True), or build "
                "it from a config with these labels."
            ) from None

    def save_pretrained(self, *args: Any, **kwargs: Any) -> None:
        """Save as the base class does, after a check that the labels fit the weights.

        Weights that 16 bits hold exactly are saved in 16 bits; `from_pretrained` returns them in the config's dtype.
        """
        self.follow_labels()
        tensors = kwargs.pop("state_dict", None) or self.state_dict()
        tensors = {name: _in_half_if_exact(values) for name, values in tensors.items()}
        super().save_pretrained(*args, state_dict=tensors, **kwargs)

    def build_head(self, config: Any) -> None:
        """Create the classifier, from states to scores of inner tags, and the decoder."""
        size, tags = self.encoder.output_size, self.tags.num_inner
        self.classifier: nn.Module = NoEmissions(tags) if config.pairs_only else nn.Linear(size, tags)
        self.decoder = build_decoder(config, self.tags, size)

    def label_axes(self) -> Axes:
        """The axes of all parameters whose sizes depend on the labels, by the names of tags, types or actions.

        Training from a model with other labels copies the entries of equal names.
        """
        tags = self.tags.inner_tags
        axes: Axes = {
            f"classifier.{name}": (tags, None)[: values.dim()] for name, values in self.classifier.named_parameters()
        }
        return axes | {f"decoder.{name}": names for name, names in self.decoder.label_axes().items()}

    @property
    def accepts_loss_kwargs(self) -> bool:
        """True if the loss is divided by the Trainer's count of labelled words; false for a mean over sentences."""
        return self.config.loss_reduction != "sentence"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialise the parameters of one module, by its `reset_parameters` if it has one."""
        if isinstance(module, (nn.Linear, nn.Conv1d)):
            if bound := getattr(module, "bound", None):  # of layers whose range is their own
                nn.init.uniform_(module.weight, -bound, bound)
            elif self.config.initializer == "kaiming":
                nn.init.kaiming_uniform_(module.weight)
            else:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            draw_vectors(module.weight, self.config)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        else:
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()

    def freeze(self) -> None:
        """Freeze the parts that the config freezes; `from_pretrained` undoes it, so `train()` repeats it."""
        if self.features.context is not None and self.config.context_frozen:
            # In evaluation mode there is no dropout, so its states can be cached.
            self.features.context.encoder.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> TaggerForTokenClassification:
        """Set training mode; frozen parts stay frozen."""
        super().train(mode)
        self.freeze()
        return self

    def get_input_embeddings(self) -> nn.Embedding:
        """The word vectors."""
        return self.features.words

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Embedding:
        """Raise: the vocabulary is the tokenizer's, which is built from a corpus."""
        raise NotImplementedError("For more words, continue training on a corpus that contains them.")

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        char_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        piece_ids: Tensor | None = None,
        context_states: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        output_logits: bool = True,
        output_path_log_probs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
        teacher_pairs: Tensor | None = None,
        teacher_weight: float = 1.0,
        **kwargs: Any,
    ) -> TaggerOutput:
        """Score a batch of sentences and, with labels, compute the loss.

        Args:
            input_ids: Word ids (B, T), 0 for padding on either side.
            char_ids: Character ids (B, T, max_word_chars), or as many as the longest word has.
            attention_mask: (B, T), 1 for words and 0 for padding; by default, where `input_ids` is not 0.
            labels: Public labels (B, T), −100 for words without a label.
            piece_ids: Pieces of the words (B, T, max_word_pieces), for models with features of pieces.
            context_states: Cached results of `features.context.states`, (B, T, hidden), in place of the pieces.
            output_attentions: Return attention weights; by default as in the config.
            output_hidden_states: Return the states of all layers; by default as in the config.
            output_logits: False to return the decoded labels without their posterior, which is faster.
            output_path_log_probs: Return the log probabilities of the decoded inner tags.
            num_items_in_batch: The divisor of the summed loss when the batch is a part of a larger one: labelled
                words for `loss_reduction="token"`, sentences for "sentence", nothing for "sum".
            teacher_pairs: Pair posterior (B, T, K, K) of a teacher over the inner tags, see `crf.pair_posterior`; it
                adds the cross-entropy with the teacher's paths to the loss.
            teacher_weight: Weight of this cross-entropy, from 0 to 1; the weight of the labels' loss is the rest.
            kwargs: `return_dict=False` for a plain tuple; other arguments of the Trainer or a pipeline are ignored.
        """
        self.follow_labels()
        self.check_inputs(input_ids, char_ids, piece_ids, labels)
        config = self.config
        output_attentions = config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        batch, time = input_ids.shape
        tensors = {
            "input_ids": input_ids,
            "char_ids": char_ids,
            "piece_ids": piece_ids,
            "context_states": context_states,
            "labels": labels,
            "teacher_pairs": teacher_pairs if time else None,
        }
        inputs = {name: values for name, values in tensors.items() if values is not None}
        mask = (input_ids != self.config.pad_token_id) if attention_mask is None else attention_mask.bool()
        if not batch or not time:
            # Layers need at least one word, so padding is added, and its results are cut off below.
            mask = _one_word(mask)
            widths = {"char_ids": [self.config.max_word_chars], "piece_ids": [self.config.max_word_pieces]}
            inputs = {
                name: _one_word(values, IGNORED if name == "labels" else 0, widths.get(name, []))
                for name, values in inputs.items()
            }
        # Padding is moved to the right, since encoders and decoders only read lengths.
        order = (
            None if _is_right_padded(mask) else torch.argsort(mask.to(torch.uint8), dim=1, descending=True, stable=True)
        )
        lengths = mask.sum(1)
        if order is not None:
            inputs = {name: _reorder(values, order) for name, values in inputs.items()}
        gold = self.gold(inputs.pop("labels"), lengths) if labels is not None else None
        teacher = (inputs.pop("teacher_pairs"), teacher_weight) if "teacher_pairs" in inputs else None
        encoded = self.encode(
            inputs.pop("input_ids"),
            inputs.pop("char_ids", None),
            lengths,
            **inputs,
            output_attentions=bool(output_attentions),
            output_hidden_states=bool(output_hidden_states),
        )
        scores = self.score(encoded.states)
        output: dict[str, Any] = {}
        if gold is not None:
            scored = [(scores, encoded.states), *((self.score(states), states) for states in encoded.earlier)]
            losses = [self.loss(*pair, gold, lengths, num_items_in_batch, teacher) for pair in scored]
            loss = torch.stack(losses).mean()
            output["loss"] = loss if encoded.penalty is None else loss + encoded.penalty
        if gold is None and self.training and torch.is_grad_enabled():
            logger.warning_once(
                "To train, pass labels and use the model's loss. Its logits show the decoded labels, so that any other "
                "loss on them (label_smoothing_factor or compute_loss_func of the Trainer) trains it wrongly."
            )
        if gold is None or not self.training:
            decoded = self.decoder(scores, lengths, encoded.states, all_tags=output_logits)
            path = self.public_path(decoded, lengths)
            if output_logits:
                output["logits"] = _restore(self.public_logits(decoded, path), order)[:batch, :time]
            else:
                output["path"] = _restore(path, order)[:batch, :time]
            if output_path_log_probs:
                output["path_log_probs"] = _restore(decoded.path_log_probs, order)[:batch, :time]
        if output_hidden_states:
            # Not by transformers' `capture_outputs`: the words of layers' outputs are in another order than the input.
            output["hidden_states"] = tuple(_restore(states, order)[:batch, :time] for states in encoded.hidden_states)
        if encoded.attentions is not None:
            both_ways = (_restore(_restore(weights, order, 2), order, 3) for weights in encoded.attentions)
            output["attentions"] = tuple(weights[:batch, :, :time, :time] for weights in both_ways)
        return TaggerOutput(**output)

    def encode(
        self,
        input_ids: Tensor,
        char_ids: Tensor | None,
        lengths: Tensor,
        piece_ids: Tensor | None = None,
        context_states: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> Encoded:
        """Encode right-padded sentences; the hidden states, if requested, begin with the word features."""
        if piece_ids is not None:
            piece_ids = piece_ids * length_mask(lengths, piece_ids.shape[1]).unsqueeze(2)
        features = self.features(input_ids, char_ids, piece_ids, context_states)
        encoded = self.encoder(features, lengths, output_attentions, output_hidden_states)
        return encoded._replace(hidden_states=(features, *encoded.hidden_states)) if output_hidden_states else encoded

    def word_states(self, input_ids: Tensor, char_ids: Tensor, piece_ids: Tensor | None = None) -> Tensor:
        """Features of distinct words (D,), or their input products in the encoder's first layer: (D, e)."""
        pieces = None if piece_ids is None else piece_ids.unsqueeze(0)
        features = self.features(input_ids.unsqueeze(0), char_ids.unsqueeze(0), pieces).squeeze(0)
        layer = self.encoder.first_layer
        return features if layer is None else layer.word_products(features)

    def label_states(self, states: Tensor, rows: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Label words whose `word_states` are known, for inference on a CPU.

        Args:
            states: Results of `word_states` for distinct words, (D, e).
            rows: The row of each word among them, (B, T), right-padded.
            attention_mask: (B, T), 1 for words and 0 for padding.

        Returns:
            `path` and `path_log_probs` of `TaggerOutput`.
        """
        self.follow_labels()
        lengths = attention_mask.sum(1)
        one_by_one = self.encoder.first_layer is None
        encoded = self.encoder(F.embedding(rows, states) if one_by_one else DistinctWords(states, rows), lengths)
        decoded = self.decoder(self.score(encoded.states), lengths, encoded.states, all_tags=False)
        return self.public_path(decoded, lengths), decoded.path_log_probs

    def score(self, states: Tensor) -> Tensor:
        """Score the inner tags, in at least float32: states (B, T, h) → (B, T, K)."""
        scores = self.classifier(states)
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def gold(self, labels: Tensor, lengths: Tensor) -> Tensor:
        """Inner tags of public labels (B, T) of right-padded sentences, IGNORED for padding."""
        return self.tags.to_inner(labels.long().where(length_mask(lengths, labels.shape[1]), IGNORED))

    def loss(
        self,
        scores: Tensor,
        states: Tensor,
        gold: Tensor,
        lengths: Tensor,
        num_items_in_batch: Tensor | int | None = None,
        teacher: tuple[Tensor, float] | None = None,
    ) -> Tensor:
        """Negative log-likelihood of inner tags (B, T), reduced as the config says.

        `teacher` is a pair posterior and the weight of the cross-entropy with it.
        """
        losses = self.decoder(scores, lengths, states, gold=gold).to(gold.device)
        if teacher is not None:
            pairs, weight = teacher
            teacher_losses = self.decoder(scores, lengths, states, teacher_pairs=pairs).to(gold.device)
            losses = (1 - weight) * losses + weight * teacher_losses
        if self.config.loss_reduction == "sum":
            return losses.sum()
        if num_items_in_batch is None:
            # A teacher labels all words.
            labelled = gold != IGNORED if teacher is None else length_mask(lengths, gold.shape[1])
            items = labelled.any(1) if self.config.loss_reduction == "sentence" else labelled
            num_items_in_batch = items.sum()
        # The loss of a batch without any label is 0.
        return losses.sum() / torch.as_tensor(num_items_in_batch).clamp(min=1)

    def public_path(self, decoded: Decoded, lengths: Tensor) -> Tensor:
        """The decoded public labels (B, T)."""
        mask = length_mask(lengths.to(decoded.path.device), decoded.path.shape[1])
        return self.tags.to_public_path(decoded.path, mask, repair=self.config.malformed_spans == "repair")

    def public_logits(self, decoded: Decoded, path: Tensor) -> Tensor:
        """Log posterior of the public labels (B, T, L), lowered where it exceeds that of the decoded label (B, T)."""
        assert decoded.log_probs is not None
        path = path.unsqueeze(-1)
        log_probs = self.tags.to_public_log_probs(decoded.log_probs)
        best = log_probs.gather(-1, path)
        return torch.minimum(log_probs, best - MARGIN).scatter(-1, path, best)

    def check_inputs(
        self, input_ids: Tensor, char_ids: Tensor | None, piece_ids: Tensor | None, labels: Tensor | None
    ) -> None:
        """Raise on ids outside the vocabularies, wrong widths and unknown labels."""
        if char_ids is None:
            raise ValueError("char_ids is missing; pass all outputs of the tokenizer: model(**tokenizer(…)).")
        if not input_ids.numel():
            return
        config = self.config
        limits = [
            ("input_ids", input_ids, input_ids.shape[-1], config.vocab_size),
            ("char_ids", char_ids, min(char_ids.shape[-1], config.max_word_chars), config.char_vocab_size),
        ]
        if piece_ids is not None and config.max_word_pieces:
            limits.append(("piece_ids", piece_ids, config.max_word_pieces, config.piece_vocab_size + 1))
        for name, ids, width, size in limits:
            if ids.shape[-1] != width or _beyond(ids, size):
                raise ValueError(
                    f"{name} must have {width} ids below {size} in each row; use the tokenizer that was saved with the "
                    "model."
                )
        if labels is not None and labels.shape != input_ids.shape:
            raise ValueError(f"labels have the shape {tuple(labels.shape)} and input_ids {tuple(input_ids.shape)}.")
        if (
            labels is not None
            and cheap_to_read(labels)
            and _beyond(labels.where(labels != IGNORED, 0), config.num_labels)
        ):
            raise ValueError(
                f"labels must be from 0 to {config.num_labels - 1} ({', '.join(config.labels)}), and {IGNORED} for "
                "words without a label; build the config with the id2label of the data."
            )


def _in_half_if_exact(values: Tensor) -> Tensor:
    # Values of an offloaded weight, on the meta device, are not known here.
    exact = values.dtype == torch.float32 and not values.is_meta and torch.equal(values.half().float(), values)
    return values.half() if exact else values


def _beyond(ids: Tensor, size: int) -> bool:
    """True if an id is not from 0 to size - 1; false on a GPU, where the embeddings report it."""
    return cheap_to_read(ids) and not torch.equal(ids, ids.clamp(0, size - 1))


def _one_word(values: Tensor, fill: int = 0, width: list[int] | None = None) -> Tensor:
    """Padding in place of values (B, T, …) whose B or T is 0; both become at least 1.

    `width` is for values (B, 0): a collator does not know how many characters a word has if there is none.
    """
    shape = (max(values.shape[0], 1), max(values.shape[1], 1), *(values.shape[2:] or width or []))
    return values.new_full(shape, fill)


def _along(order: Tensor, values: Tensor, dim: int) -> Tensor:
    """The order (B, T) as an index into dimension `dim` of values (B, …)."""
    shape = [1] * values.dim()
    shape[0], shape[dim] = order.shape
    return order.view(shape).expand_as(values)


def _reorder(values: Tensor, order: Tensor) -> Tensor:
    """Put the words (B, T, …) in an order (B, T)."""
    return values.gather(1, _along(order, values, 1))


def _is_right_padded(mask: Tensor) -> bool:
    """True if no word of a mask (B, T) comes after padding; false if the mask is not readable."""
    return cheap_to_read(mask) and not bool((mask[:, 1:] & ~mask[:, :-1]).any())


def _restore(values: Tensor, order: Tensor | None, dim: int = 1) -> Tensor:
    """Undo `_reorder`, if there was one, in dimension `dim`, on the device of the order."""
    if order is None:
        return values.cpu()  # where the readable mask is
    values = values.to(order.device)
    return torch.empty_like(values).scatter(dim, _along(order, values, dim), values)


TaggerForTokenClassification.register_for_auto_class("AutoModelForTokenClassification")
