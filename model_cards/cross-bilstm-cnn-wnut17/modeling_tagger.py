"""The one forward pass that every architecture shares; a family adds its encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from .configuration_tagger import TaggerConfig
from .decoders import Axes, Decoded, build_decoder
from .features import WordFeatures, draw_vectors
from .tags import IGNORED, TagSpace

#: How far the logit of a decoded label stands above all others, so that argmax is the decoded path.
MARGIN = 1e-3


@dataclass
class TaggerOutput(ModelOutput):
    """What a tagger returns.

    Args:
        loss: Scalar, where labels were given.
        logits: (B, T, labels) over the public labels, float32, outside of training: their argmax is the decoded path
            and their softmax the decoder's posterior, save that a label which the posterior puts above the decoded
            one is lowered to stand just below it. In training there is nothing to decode, and they are None.
        attentions: One tensor (B, heads, T, T) a layer of attention, where `output_attentions` asked for them.
        path_log_probs: (B, T, 2), where `output_path_log_probs` asked for them: log probability of a word's decoded
            inner tag, by itself and given the decoded tag of the word before. The first of a span's first word and the
            second of its others add up to the exact log probability of the span.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None
    path_log_probs: Tensor | None = None


class Encoder(nn.Module):
    """Features (B, T, d) of right-padded sentences to states (B, T, output_size): what makes an architecture."""

    output_size: int

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        """Return the states and, where asked for and had, the attention weights."""
        raise TypeError(f"{type(self).__name__} is no architecture by itself; use one of its subclasses.")


class TaggerForTokenClassification(PreTrainedModel):
    """features → encoder → scores of inner tags → decoder."""

    config_class = TaggerConfig
    encoder_class: ClassVar[type[Encoder]] = Encoder
    base_model_prefix = ""
    main_input_name = "input_ids"

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.tags = TagSpace(config.labels)
        self.features = WordFeatures(config)
        self.encoder = self.encoder_class(config, self.features.output_size)
        self.build_head(config)
        self.post_init()
        self.freeze()

    def build_head(self, config: Any) -> None:
        """Create what turns states into scores of inner tags, and these into tags."""
        self.classifier: nn.Module = nn.Linear(self.encoder.output_size, self.tags.num_inner)
        self.decoder = build_decoder(config, self.tags, self.encoder.output_size)

    def label_axes(self) -> Axes:
        """The axes of all parameters whose sizes follow from the labels, by the names of tags, types or actions.

        Parameters of two models that bear the same name, of one architecture, mean the same by entries of equal names.
        """
        tags = self.tags.inner_tags
        axes: Axes = {
            f"classifier.{name}": (tags, None)[: values.dim()] for name, values in self.classifier.named_parameters()
        }
        return axes | {f"decoder.{name}": names for name, names in self.decoder.label_axes().items()}

    @property
    def accepts_loss_kwargs(self) -> bool:
        """Whether the Trainer's count of labelled words is what divides the loss: not so for a mean over sentences."""
        return self.config.loss_reduction != "sentence"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Let a module start as its paper says; also refills the tables that no weights file holds.

        A module starts what it holds itself: transformers passes over modules that hold nothing but other modules.
        """
        if isinstance(module, (nn.Linear, nn.Conv1d)):
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
        """Fix what the config wants fixed; from_pretrained forgets it, so train() says it again.

        What somebody froze by hand stays frozen.
        """
        if self.config.freeze_word_embeddings:
            self.features.words.weight.requires_grad_(False)
        if self.features.context is not None and self.config.context_frozen:
            # Without dropout, too: what it says of a sentence is then always the same.
            self.features.context.encoder.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> TaggerForTokenClassification:
        """Set training mode, frozen parts staying frozen."""
        super().train(mode)
        self.freeze()
        return self

    def get_input_embeddings(self) -> nn.Embedding:
        """The word vectors."""
        return self.features.words

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the word vectors."""
        self.features.words = value

    def forward(
        self,
        input_ids: Tensor,
        char_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        piece_ids: Tensor | None = None,
        context_states: Tensor | None = None,
        output_attentions: bool | None = None,
        output_path_log_probs: bool = False,
        return_dict: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **kwargs: Any,
    ) -> TaggerOutput | tuple:
        """Score, and with labels also judge, a batch of sentences.

        Args:
            input_ids: Word ids (B, T), 0 for padding on either side.
            char_ids: Character ids (B, T, max_word_chars).
            attention_mask: (B, T), 1 for words and 0 for padding; what is not 0 in `input_ids` where absent.
            labels: Public labels (B, T), −100 for words without label.
            piece_ids: Pieces of the words (B, T, max_word_pieces), for models that make features of them.
            context_states: What `features.context.states` made of the pieces before, (B, T, layers · hidden), in
                their place.
            output_attentions: Return attention weights as well.
            output_path_log_probs: Return the log probabilities of the decoded inner tags as well.
            return_dict: False for a plain tuple.
            num_items_in_batch: What the summed loss is divided by, when the batch is a part of a larger one: labelled
                words for `loss_reduction="token"`, sentences for "sentence", nothing for "sum".
            kwargs: Whatever else the Trainer or a pipeline passes on; not used.
        """
        self.check_inputs(input_ids, char_ids, piece_ids, labels)
        mask = (input_ids != self.config.pad_token_id) if attention_mask is None else attention_mask.bool()
        # Words first, padding last, whatever side it came from: encoders and decoders know lengths alone.
        order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
        lengths = mask.sum(1)
        with_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        scores, states, attentions = self.score(
            _reorder(input_ids, order),
            _reorder(char_ids, order),
            lengths,
            bool(with_attentions),
            None if piece_ids is None else _reorder(piece_ids.masked_fill(~mask.unsqueeze(-1), 0), order),
            None if context_states is None else _reorder(context_states, order),
        )
        loss = logits = path_log_probs = None
        if labels is not None:
            loss = self.loss(scores, states, _reorder(labels, order), lengths, num_items_in_batch)
        if labels is None or not self.training:
            decoded = self.decode(scores, states, lengths)
            logits = _restore(self.public_logits(decoded, lengths), order)
            if output_path_log_probs:
                path_log_probs = _restore(decoded.path_log_probs, order)
        if attentions is not None:
            attentions = tuple(_restore(_restore(weights, order, 2), order, 3) for weights in attentions)
        output = TaggerOutput(loss=loss, logits=logits, attentions=attentions, path_log_probs=path_log_probs)
        use_dict = self.config.return_dict if return_dict is None else return_dict
        return output if use_dict else output.to_tuple()

    def score(
        self,
        input_ids: Tensor,
        char_ids: Tensor,
        lengths: Tensor,
        output_attentions: bool = False,
        piece_ids: Tensor | None = None,
        context_states: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...] | None]:
        """Score the inner tags of right-padded sentences.

        Returns:
            Scores (B, T, K), at least float32, the states (B, T, h) that they come from, and attention weights.
        """
        time = input_ids.shape[1]
        if time == 0:  # Layers want a word to work on: give them padding, and take its results away again.
            input_ids, char_ids = _one_word(input_ids), _one_word(char_ids)
            piece_ids, context_states = (
                None if values is None else _one_word(values) for values in (piece_ids, context_states)
            )
        features = self.features(input_ids, char_ids, piece_ids, context_states)
        states, attentions = self.encoder(features, lengths, output_attentions)
        states = states[:, :time]
        scores = self.classifier(states)
        if attentions is not None:
            attentions = tuple(weights[..., :time, :time] for weights in attentions)
        return scores.to(torch.promote_types(scores.dtype, torch.float32)), states, attentions

    def loss(
        self,
        scores: Tensor,
        states: Tensor,
        labels: Tensor,
        lengths: Tensor,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Negative log-likelihood of public labels (B, T), reduced as the config says."""
        if labels.shape[1] == 0:
            return scores.sum()  # 0, and still joined to the weights.
        position = torch.arange(labels.shape[1], device=labels.device)
        gold = self.tags.to_inner(labels.masked_fill(position >= lengths.unsqueeze(1), IGNORED))
        losses = self.decoder.negative_log_likelihood(scores, gold, lengths, states)
        if self.config.loss_reduction == "sum":
            return losses.sum()
        if num_items_in_batch is None:
            labelled = gold != IGNORED
            items = labelled.any(1) if self.config.loss_reduction == "sentence" else labelled
            num_items_in_batch = items.sum()
        # A batch without any label costs nothing.
        return losses.sum() / torch.as_tensor(num_items_in_batch).clamp(min=1)

    def decode(self, scores: Tensor, states: Tensor, lengths: Tensor) -> Decoded:
        """Best path and posterior of the inner tags."""
        return self.decoder(scores, lengths, states)

    def public_logits(self, decoded: Decoded, lengths: Tensor) -> Tensor:
        """Log posterior of the public labels (B, T, L), the decoded ones standing out by a margin."""
        batch, time = decoded.path.shape
        if time == 0:
            return decoded.log_probs.new_zeros(batch, time, len(self.tags.labels))
        mask = torch.arange(time, device=lengths.device) < lengths.unsqueeze(1)
        path = self.tags.to_public_path(decoded.path, mask, repair=self.config.malformed_spans == "repair")
        path = path.unsqueeze(-1)
        log_probs = self.tags.to_public_log_probs(decoded.log_probs)
        best = log_probs.gather(-1, path)
        return torch.minimum(log_probs, best - MARGIN).scatter(-1, path, best)

    def check_inputs(
        self, input_ids: Tensor, char_ids: Tensor, piece_ids: Tensor | None, labels: Tensor | None
    ) -> None:
        """Refuse ids that this model cannot know, each with one sentence."""
        config = self.config
        if char_ids.shape[-1] != config.max_word_chars:
            raise ValueError(
                f"char_ids is {char_ids.shape[-1]} characters wide and the model's max_word_chars is "
                f"{config.max_word_chars}; use the tokenizer that was saved with the model."
            )
        if piece_ids is None or not config.max_word_pieces:
            piece_ids = input_ids.new_zeros(0)
        elif piece_ids.shape[-1] != config.max_word_pieces:
            raise ValueError(
                f"piece_ids is {piece_ids.shape[-1]} pieces wide and the model's max_word_pieces is "
                f"{config.max_word_pieces}; use the tokenizer that was saved with the model."
            )
        # Looking into a tensor makes a GPU wait, and a graph break; there, embeddings report what is out of range.
        if input_ids.device.type != "cpu" or torch.compiler.is_compiling() or not input_ids.numel():
            return
        for name, ids, size, field in (
            ("input_ids", input_ids, config.vocab_size, "vocab_size"),
            ("char_ids", char_ids, config.char_vocab_size, "char_vocab_size"),
            ("piece_ids", piece_ids, config.piece_vocab_size + 1, "piece_vocab_size + 1"),
        ):
            if not ids.numel():
                continue
            lowest, highest = ids.aminmax()
            if lowest < 0 or highest >= size:
                raise ValueError(
                    f"{name} holds {int(lowest if lowest < 0 else highest)} and the model's {field} is {size}; "
                    "use the tokenizer that was saved with the model."
                )
        if labels is None:
            return
        wrong = labels[((labels < 0) & (labels != IGNORED)) | (labels >= config.num_labels)]
        if wrong.numel():
            raise ValueError(
                f"labels holds {int(wrong[0])}, and the config knows labels 0 to {config.num_labels - 1} "
                f"({', '.join(config.labels)}) and {IGNORED} for words without label; "
                "build the config with the id2label of the data."
            )


def _one_word(values: Tensor) -> Tensor:
    """What of a batch without words (B, 0, …) is one word of padding (B, 1, …)."""
    return values.new_zeros(len(values), 1, *values.shape[2:])


def _along(order: Tensor, values: Tensor, dim: int) -> Tensor:
    """The order (B, T) as an index into dimension `dim` of values (B, …)."""
    shape = [1] * values.dim()
    shape[0], shape[dim] = order.shape
    return order.view(shape).expand_as(values)


def _reorder(values: Tensor, order: Tensor) -> Tensor:
    """Bring the words (B, T, …) into an order (B, T)."""
    return values.gather(1, _along(order, values, 1))


def _restore(values: Tensor, order: Tensor, dim: int = 1) -> Tensor:
    """Undo `_reorder` in dimension `dim`."""
    return torch.empty_like(values).scatter(dim, _along(order, values, dim), values)


TaggerForTokenClassification.register_for_auto_class("AutoModelForTokenClassification")
