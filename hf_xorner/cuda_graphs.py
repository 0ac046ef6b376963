"""CUDA graphs: a function of tensors is captured once for each of their shapes, and replayed.

A batch of these models is hundreds of small kernels, which take longer to launch than to run; a graph is launched once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .errors import first_line

_log = logging.getLogger(__name__)

#: Calls with a shape before it is captured, in which PyTorch creates handles and tables; rare shapes are not worth it.
ORDINARY_CALLS = 3
#: Shapes that are captured; others are computed as without graphs.
MOST_GRAPHS = 64

Results = tuple[Tensor, ...]
#: Captures the work of a call, and returns a function that does this work and returns the call's results.
Capture = Callable[[Callable[[], Results]], Callable[[], Results]]


def rounded_size(size: int) -> int:
    """Return a size rounded up, so that batches have few shapes: to a multiple of 8, above 64 of 32."""
    step = 8 if size <= 64 else 32
    return -(-size // step) * step


def longest_word(char_ids: Tensor) -> int:
    """Return the length of the longest word, rounded up: char_ids (…, max_word_chars) on the CPU, 0 for padding."""
    used = char_ids.flatten(0, -2).any(0).nonzero()
    return rounded_size(int(used[-1]) + 1 if len(used) else 0)


@contextmanager
def on_stream(stream: torch.cuda.Stream) -> Iterator[None]:
    """Run on a stream, after the work before and before the work after: graphs are not captured on the default one."""
    stream.wait_stream(torch.cuda.current_stream(stream.device))
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream(stream.device).wait_stream(stream)


class CudaCapture:
    """Captures calls as CUDA graphs. They share memory, since none of them reads what another one left.

    All calls, ordinary ones included, must be made on the same stream, in `on_stream`: gradients that are first added
    up on another stream cannot be captured.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, call: Callable[[], Results]) -> Callable[[], Results]:
        """Capture a call; its results are overwritten by the next replay."""
        graph = torch.cuda.CUDAGraph()
        # Other threads, such as that which pins memory, may go on.
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
            results = call()

        def replay() -> Results:
            graph.replay()
            return results

        return replay


class _Captured(NamedTuple):
    """A captured call."""

    inputs: dict[str, Tensor]  # that it reads
    replay: Callable[[], Results]


class Replayed:
    """A function of named tensors, captured for each of their shapes. A shape's first calls are ordinary ones.

    Arguments that are not tensors are constants of a captured call. If a call cannot be captured, calls of its shape
    are ordinary ones from then on; one line of the log says so.

    Args:
        function: Returns tensors that depend on the arguments and the module. It reads no values in Python.
        module: Its weights are read by the function. They may change their values; if they move, calls are captured
            anew.
        capture: A `CudaCapture`.
    """

    def __init__(self, function: Callable[..., Results], module: nn.Module, capture: Capture) -> None:
        self.function, self.module, self.capture = function, module, capture
        self.captured: dict[Any, _Captured] = {}
        self._calls: Counter[Any] = Counter()
        self._refused: set[Any] = set()
        self._lock = Lock()

    def __call__(self, **arguments: Any) -> Results:
        """Return the results of the function."""
        with self._lock:
            key = self._key(arguments)
            found = self.captured.get(key) or self._captured(key, arguments)
            if found is None:
                return self.function(**arguments)
            for name, values in found.inputs.items():
                values.copy_(arguments[name], non_blocking=True)
            return tuple(values.clone() for values in found.replay())

    def _key(self, arguments: dict[str, Any]) -> Any:
        """Return all that a captured call depends on, besides the values of tensors."""
        weights = chain(self.module.parameters(), self.module.buffers())
        described = (
            (name, (value.shape, value.dtype, value.device) if isinstance(value, Tensor) else value)
            for name, value in arguments.items()
        )
        return frozenset(described), tuple(weight.data_ptr() for weight in weights)

    def _captured(self, key: Any, arguments: dict[str, Any]) -> _Captured | None:
        """Capture a call, if it is time to."""
        if key in self._refused or len(self.captured) >= MOST_GRAPHS:
            return None
        self._calls[key] += 1
        if self._calls[key] <= ORDINARY_CALLS:
            return None
        inputs = {name: value.clone() for name, value in arguments.items() if isinstance(value, Tensor)}
        try:
            replay = self.capture(lambda: self.function(**{**arguments, **inputs}))
        except RuntimeError as error:
            if not self._refused:
                _log.warning("A shape has no CUDA graph, since the call cannot be captured: %s.", first_line(error))
            self._refused.add(key)
            return None
        if len(self.captured) + 1 == MOST_GRAPHS:
            _log.warning("%d shapes have a CUDA graph; others are computed without.", MOST_GRAPHS)
        return self.captured.setdefault(key, _Captured(inputs, replay))
