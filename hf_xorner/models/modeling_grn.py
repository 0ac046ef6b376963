"""GRN, the gated relation network, and the variants that its paper compares it with (chen2019)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .configuration_grn import GrnConfig
from .layers import Layout, cheap_to_read, dropout, length_mask
from .modeling_tagger import Encoded, Encoder, TaggerForTokenClassification

#: Elements of a slice of the computation over pairs of words, to fit a CPU's caches and to occupy a GPU.
CPU_SLICE, GPU_SLICE = 1 << 17, 1 << 24

#: Longer sentences are refused where every word is compared with every other: twice as many take four times as long.
LONGEST_COMPARED = 32768

#: Slices of fewer words are computed word by word, which saves two of seven passes over the slice.
FEW_WORDS = 3

#: Exponentials are factored if the exponents are below this share of the maximum of their dtype.
SAFE_EXPONENTS = 0.9


class PairProjection(nn.Linear):
    """W [x_i ; x_j] + b of any two words, as the sum u_i + v_j of one vector per word."""

    def forward(  # type: ignore[override]
        self, states: Tensor, lengths: Tensor, second_states: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """u = W₁ x + b and v = W₂ x of all words: states (B, T, C) → twice (B, T, out_features).

        `second_states`, if given, take the place of x in v.
        """
        first, second = self.weight.chunk(2, 1)
        if second_states is None:
            u, v = linear_of_words(states, lengths, torch.cat([first, second])).chunk(2, -1)
        else:
            u, v = linear_of_words(states, lengths, first), F.linear(second_states, second)
        return u + self.bias, v


class Relation(nn.Module):
    """A relation layer: r_i of each word from all r_ij of its sentence.

    Subclasses define `fuse`.
    """

    #: Size of r_ij; None for that of x.
    relation_size: ClassVar[int | None] = None
    #: True if every word is compared with every other one.
    quadratic: ClassVar[bool] = True

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.projection = PairProjection(2 * input_size, self.relation_size or input_size)

    def fuse(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Compute r_i of all words: states (B, T, C), lengths (B,) → (B, T, C)."""
        raise NotImplementedError

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        """p_i = tanh(r_i): states (B, T, C), lengths (B,) → (B, T, C); arbitrary for padding."""
        return self.fuse(states, lengths).tanh()

    def norms(self, states: Tensor, lengths: Tensor) -> Tensor:
        """L2 norms of all r_ij, (B, T, T) in float32 or wider, 0 where i or j is padding (chen2019's visualisation).

        ‖r_ij‖ is the distance between u_i and −v_j, so r_ij is not materialised.
        """
        u, v = (part.to(wide_type(part)) for part in self.projection(states, lengths))
        # The faster matrix product is inexact for small norms.
        norms = torch.cdist(u, -v, compute_mode="donot_use_mm_for_euclid_dist")
        within = length_mask(lengths, states.shape[1])
        return norms.masked_fill(~(within.unsqueeze(2) & within.unsqueeze(1)), 0)


class GatedRelation(Relation):
    """r_i = 1/T Σ_j σ(r_ij) ⊙ x_j: a gate for every pair of words and every channel (GRN, chen2019)."""

    def fuse(self, states: Tensor, lengths: Tensor) -> Tensor:
        """r_i of all words: states (B, T, C), lengths (B,) → (B, T, C)."""
        u, v = self.projection(states, lengths)
        wide = wide_type(u)
        values = states.to(wide).masked_fill(beyond(states, lengths), 0)
        # Masked again, since `gated_sum` needs gradients of 0 beyond the end.
        sums = gated_sum(u.to(wide), v.to(wide), values, lengths).masked_fill(beyond(states, lengths), 0)
        return (sums / true_lengths(lengths)).to(states.dtype)


class DirectRelation(Relation):
    """r_i = 1/T Σ_j r_ij, without a gate (DFN, chen2019, eq. 5): W₁ x_i + W₂ x̄ + b, where x̄ is the mean word."""

    quadratic = False

    def fuse(self, states: Tensor, lengths: Tensor) -> Tensor:
        """r_i of all words: states (B, T, C), lengths (B,) → (B, T, C)."""
        mean = states.masked_fill(beyond(states, lengths), 0).sum(1, keepdim=True) / true_lengths(lengths)
        u, v = self.projection(states, lengths, mean.to(states.dtype))
        return u + v


class ScalarGateRelation(Relation):
    """r_i = 1/T Σ_j σ(w · [x_i ; x_j] + b) x_j: one gate per pair of words (GAttN, chen2019, eq. 7)."""

    relation_size: ClassVar[int | None] = 1

    def fuse(self, states: Tensor, lengths: Tensor) -> Tensor:
        """r_i of all words: states (B, T, C), lengths (B,) → (B, T, C)."""
        u, v = self.projection(states, lengths)
        values = states.masked_fill(beyond(states, lengths), 0)
        sums = (u + v.transpose(1, 2)).sigmoid() @ values
        return (sums / true_lengths(lengths)).to(states.dtype)


#: The relation layers by their names in a config.
RELATIONS: dict[str, type[Relation]] = {
    "gated": GatedRelation,
    "direct": DirectRelation,
    "scalar_gate": ScalarGateRelation,
}


def wide_type(values: Tensor) -> torch.dtype:
    """The dtype of the values, or float32 if that is wider; for sums over sentences."""
    return torch.promote_types(values.dtype, torch.float32)


def beyond(states: Tensor, lengths: Tensor) -> Tensor:
    """Mask of padding in (B, T, …): (B, T, 1)."""
    return ~length_mask(lengths, states.shape[1]).unsqueeze(2)


def true_lengths(lengths: Tensor) -> Tensor:
    """Lengths (B, 1, 1) as divisors, at least 1."""
    return lengths.clamp(min=1).view(-1, 1, 1)


def linear_of_words(states: Tensor, lengths: Tensor, weight: Tensor) -> Tensor:
    """W x of all words: states (B, T, C), weight (D, C) → (B, T, D); on a CPU without padding."""
    if not cheap_to_read(states):
        return F.linear(states, weight)
    words = (~beyond(states, lengths)).flatten().nonzero().squeeze(1)
    products = F.linear(states.flatten(0, 1).index_select(0, words), weight)
    flat = products.new_zeros(states.shape[0] * states.shape[1], len(weight)).index_copy(0, words, products)
    return flat.unflatten(0, states.shape[:2])


@torch.compiler.disable
def gated_sum(u: Tensor, v: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Σ_j σ(u_i + v_j) ⊙ x_j over the words j of each sentence, in memory linear in its length.

    u, v and values x are (B, T, C) in float32 or wider. Values, and the gradient of the result, must be 0 beyond a
    sentence's end. Excluded from compiled graphs, which would unroll it.
    """
    return _GatedSum.apply(u, v, values, lengths)


class _GatedSum(torch.autograd.Function):
    """The gated sum, whose backward pass recomputes the gates.

    With g the gradient of the sums r: x_j receives Σ_i g_i σ_ij, v_j receives x_j Σ_i g_i σ'_ij and u_i receives
    g_i Σ_j σ'_ij x_j, where σ' = σ - σ². So both passes need sums of σ and of σ² over one of the two words.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
        """Σ_j σ_ij x_j and, for u's gradient, Σ_j σ²_ij x_j."""
        gates = Gates.of(u, v)
        if not any(ctx.needs_input_grad):
            return gates.sums(values, lengths, squared=False)[0]
        sums, squares = gates.sums(values, lengths)
        ctx.save_for_backward(gates.first, gates.second, values, squares.neg_().add_(sums), lengths)
        ctx.factored = gates.factored
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Σ_i σ_ij g_i and Σ_i σ²_ij g_i: the forward pass with the two words exchanged."""
        first, second, values, slopes, lengths = ctx.saved_tensors
        (gradient,) = gradients
        sums, squares = Gates(second, first, ctx.factored).sums(gradient, lengths)
        return gradient * slopes, squares.neg_().add_(sums).mul_(values), sums, None


class Gates(NamedTuple):
    """σ(u_i + v_j) of the words of a sentence, as 1 / (1 + e^(-u_i - v_j)).

    Unless it overflows, e^(-u_i - v_j) is computed as e^-u_i · e^-v_j, so that pairs need no exponential.
    """

    first: Tensor  # (B, T, C): e^-u, or -u
    second: Tensor  # (B, T, C): e^-v, or -v
    factored: bool  # whether these are exponentials

    @classmethod
    def of(cls, u: Tensor, v: Tensor) -> Gates:
        """Gates of u and v, factored if their values are small enough; not on a GPU, which would have to wait."""
        if not cheap_to_read(u) or not u.numel():
            return cls(-u, -v, False)
        limit = SAFE_EXPONENTS * math.log(torch.finfo(u.dtype).max)
        extremes = torch.stack([extreme for part in (u, v) for extreme in part.aminmax()])
        if bool((extremes.abs() <= limit).all()):
            return cls(u.neg().exp_(), v.neg().exp_(), True)
        return cls(-u, -v, False)

    def sums(self, values: Tensor, lengths: Tensor, squared: bool = True) -> tuple[Tensor, Tensor]:
        """Σ_j σ_ij ⊙ x_j and, if `squared`, Σ_j σ²_ij ⊙ x_j of right-padded sentences: values (B, T, C) → (B, T, C)."""
        sums = torch.zeros_like(self.first, memory_format=torch.contiguous_format)
        squares = torch.zeros_like(sums) if squared else sums
        for rows, time in similar_sentences(lengths, self.first):
            gates = Gates(self.first[rows, :time], self.second[rows, :time], self.factored)
            group_sums, group_squares = gates.sums_of_group(values[rows, :time], squared)
            sums[rows, :time] = group_sums
            if squared:
                squares[rows, :time] = group_squares
        return sums, squares

    def sums_of_group(self, values: Tensor, squared: bool) -> tuple[Tensor, Tensor]:
        """The sums over all words of all sentences, slice by slice."""
        sums = torch.zeros_like(self.first, memory_format=torch.contiguous_format)
        squares = torch.zeros_like(sums) if squared else sums
        one = sums.new_ones(())
        time = values.shape[1]
        width = (CPU_SLICE if values.device.type == "cpu" else GPU_SLICE) // max(1, self.first.numel())
        if width >= min(FEW_WORDS, time):
            first = self.first.unsqueeze(2)
            for begin in range(0, time, max(1, width)):
                words = slice(begin, begin + width)
                inverses = self.inverses(one, first, self.second[:, None, words])  # (B, T, words, C)
                products = values[:, None, words] / inverses
                sums += products.sum(2)
                if squared:
                    squares += products.div_(inverses).sum(2)
            return sums, squares
        inverses = torch.empty_like(sums)
        for word in range(time):
            column = slice(word, word + 1)
            self.inverses(one, self.first, self.second[:, column], out=inverses)
            sums.addcdiv_(values[:, column], inverses)
            if squared:
                squares.addcdiv_(values[:, column], inverses.square_())
        return sums, squares

    def inverses(self, one: Tensor, first: Tensor, second: Tensor, out: Tensor | None = None) -> Tensor:
        """1 / σ of parts of the two; infinite where σ underflows to 0."""
        if self.factored:
            return torch.addcmul(one, first, second, out=out)
        return torch.add(first, second, out=out).exp_().add_(1)


def similar_sentences(lengths: Tensor, values: Tensor) -> list[tuple[Tensor | slice, int]]:
    """Groups of sentences of similar length that each fill a slice, with the length of the longest.

    lengths (B,), values (B, T, C). A GPU, which would have to wait for the lengths, takes all at once.
    """
    batch, time, size = values.shape
    whole_batch: list[tuple[Tensor | slice, int]] = [(slice(None), time)]
    if not cheap_to_read(values) or values.numel() <= CPU_SLICE:
        return whole_batch
    order = lengths.argsort(descending=True, stable=True)
    longest_first = lengths[order].tolist()
    groups: list[tuple[Tensor | slice, int]] = []
    begin = 0
    while begin < batch and longest_first[begin] > 0:
        longest = longest_first[begin]
        count = max(1, CPU_SLICE // (longest * size))
        groups.append((order[begin : begin + count], longest))
        begin += count
    return groups


class ContextLayer(nn.Module):
    """x_i = max over branches of tanh(convolution of the branch's width), element by element (chen2019).

    Sentences are padded with zeros as in the paper; its program pads with a trained vector up to the batch's longest.
    """

    def __init__(self, config: GrnConfig, input_size: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(input_size, config.hidden_size, width, padding=width // 2) for width in config.context_widths
        )
        self.reach = max(config.context_widths) // 2

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """features (B, T, d) → (B, T, hidden_size)."""
        layout = Layout.of(lengths, features.shape[1], gap=self.reach)
        words = layout.lay_out(features)
        strongest, *branches = (convolution(words) for convolution in self.convolutions)
        for branch in branches:
            strongest = torch.maximum(strongest, branch)
        # tanh is monotonic, so it is computed once, after the maximum.
        return layout.take_back(strongest.tanh())


class GrnEncoder(Encoder):
    """Context layer, relation layer, dropout."""

    def __init__(self, config: GrnConfig, input_size: int) -> None:
        super().__init__()
        self.context = ContextLayer(config, input_size) if config.context_widths else None
        self.output_size = config.hidden_size if config.context_widths else input_size
        self.relation = None if config.relation == "none" else RELATIONS[config.relation](self.output_size)
        self.dropout = config.dropout

    def forward(
        self, features: Tensor, lengths: Tensor, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> Encoded:
        """features (B, T, d) → p (B, T, hidden_size).

        In place of attention weights it returns norms of relations, (B, 1, T, T), if requested.
        """
        if self.relation is not None and self.relation.quadratic and features.shape[1] > LONGEST_COMPARED:
            raise ValueError(
                f"A sentence has {features.shape[1]:,} words, and this model compares every word with every other, "
                f"which it does for at most {LONGEST_COMPARED:,}; split the text."
            )
        states = features if self.context is None else self.context(features, lengths)
        below, norms = () if self.context is None or self.relation is None else (states,), None
        if self.relation is not None:
            if output_attentions:
                norms = (self.relation.norms(states, lengths).unsqueeze(1),)
            states = self.relation(states, lengths)
        states = dropout(states, self.dropout, self.training)
        return Encoded(states, (*below, states) if output_hidden_states else (), norms)


class GrnForTokenClassification(TaggerForTokenClassification):
    """GRN, DFN or GAttN, by the config's `relation`."""

    encoder: GrnEncoder

    config_class = GrnConfig
    encoder_class = GrnEncoder
