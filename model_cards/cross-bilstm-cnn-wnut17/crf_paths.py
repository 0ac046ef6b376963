"""The paths of a linear chain: the score of one, the best one, the k best ones.

Shapes: as those of a `Chain`, lengths (B,). Nothing in the loops waits for a GPU.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .crf_messages import Chain, by_step, moves_along

#: Steps after which a path's score is brought back near 0: grown with the sentence, it would have no digits for a word.
STEPS_TO_GROW = 8


@torch.compiler.disable
def path_score(chain: Chain, lengths: Tensor, path: Tensor) -> Tensor:
    """Score of one path (B, T) a sentence: (B,); 0 for a sentence without words, −∞ for a path that is barred."""
    emissions, transitions, start, end = chain
    if emissions.shape[1] == 0:
        return emissions.new_zeros(len(emissions))
    path = path.t()
    inside = torch.arange(len(path), device=path.device).unsqueeze(1) < lengths  # (T, B)
    words = emissions.gather(2, path.t().unsqueeze(2)).squeeze(2).t()
    moves = moves_along(transitions, path)
    first = start.expand(emissions[:, 0].shape).gather(1, path[0].unsqueeze(1)).squeeze(1)
    last = end[path.gather(0, (lengths - 1).clamp(min=0).unsqueeze(0)).squeeze(0)]
    within = words.masked_fill(~inside, 0).sum(0) + moves.masked_fill(~inside[1:], 0).sum(0)
    return within + (first + last).masked_fill(lengths == 0, 0)


@torch.compiler.disable
@torch.no_grad()
def best_path(chain: Chain, lengths: Tensor) -> Tensor:
    """The path of the highest score (Viterbi), (B, T); what stands beyond a sentence's end means nothing."""
    emissions, transitions, start, end = chain
    batch, time, tags = emissions.shape
    if time == 0:
        return lengths.new_zeros(batch, 0)
    # The sentences last: sums and maxima then run over contiguous memory.
    words = emissions.permute(1, 2, 0).contiguous()  # (T, K, B)
    words = words - words.amax(1, keepdim=True)
    moves = None if chain.conditioned else transitions.unsqueeze(2)
    scores = torch.empty_like(words)
    pairs = words.new_empty(tags, tags, batch)
    score = start.expand(batch, tags).t()
    for step, (word, here) in enumerate(by_step(words, scores)):
        if step:
            move = transitions[:, step].permute(1, 2, 0) if moves is None else moves
            score = torch.add(score.unsqueeze(1), move, out=pairs).amax(0)
        score = torch.add(score, word, out=here)
        if step % STEPS_TO_GROW == 0:
            score -= score.amax(0, keepdim=True)
    last = (lengths - 1).clamp(min=0)
    rows = torch.arange(batch, device=last.device)
    tag = (scores[last, :, rows] + end).argmax(1)
    path = torch.empty(time, batch, dtype=torch.long, device=last.device)
    path[time - 1] = tag
    inside = torch.arange(time, device=last.device).unsqueeze(1) < lengths
    for step in range(time - 1, 0, -1):
        # Where the best move into a tag came from is sought for the tags of the path alone.
        move = transitions[rows, step, :, tag].t() if moves is None else transitions.index_select(1, tag)
        source = (scores[step - 1] + move).max(0).indices  # several times as fast as argmax
        # Beyond the end of a sentence its last tag is carried back to its last word.
        tag = torch.where(inside[step], source, tag, out=path[step - 1])
    return path.t()


@torch.compiler.disable
@torch.no_grad()
def k_best_paths(chain: Chain, lengths: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k paths of the highest scores, best first, (B, k, T), and their scores (B, k).

    Where a sentence has fewer than k paths, the scores of the others are −∞ and their tags mean nothing. A sentence
    without words has one path, of score 0.
    """
    if k < 1:
        raise ValueError(f"k={k} is no number of paths; give 1 or more.")
    emissions, transitions, start, end = chain
    batch, time, tags = emissions.shape
    alone = torch.full((batch, k), -torch.inf, dtype=emissions.dtype, device=emissions.device)
    alone[:, 0] = 0
    if time == 0:
        return lengths.new_zeros(batch, k, 0), alone
    # Of each tag the k best partial paths that end in it, (B, K, k); entry tag · k + rank of the flattened ones.
    score = alone.unsqueeze(1) + (start + emissions[:, 0]).unsqueeze(2)
    taken_off = torch.zeros_like(alone[:, :1])
    itself = torch.arange(tags * k, device=lengths.device).expand(batch, -1)
    pointers = itself.repeat(time, 1, 1)  # (T, B, K · k)
    for step in range(1, time):
        inside = (step < lengths).unsqueeze(1)
        move = transitions[:, step] if chain.conditioned else transitions
        longer = (score.unsqueeze(3) + move.unsqueeze(-2)).flatten(1, 2)  # (B, K · k, K)
        best, source = longer.topk(k, 1)
        best = best.transpose(1, 2) + emissions[:, step].unsqueeze(2)
        top = best.amax((1, 2))
        score = torch.where(inside.unsqueeze(2), best - top[:, None, None], score)
        taken_off = taken_off + torch.where(inside, top.unsqueeze(1), 0)
        pointers[step] = torch.where(inside, source.transpose(1, 2).flatten(1), itself)
    total, place = (score + end.unsqueeze(1)).flatten(1).topk(k, 1)
    paths = torch.empty(time, batch, k, dtype=torch.long, device=lengths.device)
    for step in range(time - 1, -1, -1):
        paths[step] = place // k
        place = pointers[step].gather(1, place)
    return paths.permute(1, 2, 0), torch.where((lengths > 0).unsqueeze(1), total + taken_off, alone)
