"""A CUDA graph on the CPU: operations are recorded once, and done again on the same memory with the same numbers."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
READS_VALUES = {
    *(aten._local_scalar_dense, aten.equal, aten.nonzero, aten.masked_select, aten.repeat_interleave),
    *(aten._unique2, aten.unique_dim),
}
INDEXES = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}


def tensors_in(values):
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


class Recording(TorchDispatchMode):
    """The operations of a call; values that Python reads raise, as they do in the capture of a CUDA graph."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        packet = operation.overloadpacket
        masked = packet in INDEXES and any(index.dtype == torch.bool for index in tensors_in(arguments[1]))  # a mask
        if packet in READS_VALUES or masked:
            raise RuntimeError(f"{operation} is not permitted when stream is capturing")
        results = operation(*arguments, **(options or {}))
        self.operations.append((operation, arguments, options or {}, results))
        return results

    @torch.no_grad()
    def replay(self):
        for operation, arguments, options, results in self.operations:
            again = operation(*arguments, **options)
            memory = {values.untyped_storage().data_ptr() for values in tensors_in((arguments, options))}
            for old, new in zip(tensors_in(results), tensors_in(again), strict=True):
                if old.untyped_storage().data_ptr() not in memory:  # neither a view nor in place
                    old.copy_(new)


class Recorder:
    """Captures calls, which leaves gradients as they are, and counts captures and replays.

    Args:
        model: The model whose gradients calls add to.
    """

    def __init__(self, model=None):
        self.model, self.captures, self.replays = model, 0, 0

    def __call__(self, call):
        weights = [] if self.model is None else list(self.model.parameters())
        before = [None if weight.grad is None else weight.grad.clone() for weight in weights]
        recording = Recording()
        with recording:
            results = call()
        for weight, gradient in zip(weights, before, strict=True):
            if gradient is not None:
                weight.grad.copy_(gradient)
        self.captures += 1

        def replay():
            self.replays += 1
            recording.replay()
            return results

        return replay
