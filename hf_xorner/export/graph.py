"""A graph of ONNX nodes that is built like a program: every call of an operator adds a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partialmethod
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

#: The version of ONNX's operators (of 2022), and the matching version of the file format.
OPSET, IR_VERSION = 18, 8

#: Smaller weights are not saved as int8.
FEWEST_QUANTIZED = 1024

_TYPES = {
    "bool": TensorProto.BOOL,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}

#: A value of the graph, a tensor, or numbers (integers become int64, others float32).
ValueLike = Any


class Value:
    """A tensor of a graph, with Python's operators."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _apply(self, operator: str, *others: ValueLike) -> Value:
        return getattr(self.graph, operator)(self, *others)

    __add__ = partialmethod(_apply, "Add")
    __sub__ = partialmethod(_apply, "Sub")
    __mul__ = partialmethod(_apply, "Mul")
    __truediv__ = partialmethod(_apply, "Div")  # the quotient of integers is rounded towards 0
    __matmul__ = partialmethod(_apply, "MatMul")
    __and__ = partialmethod(_apply, "And")
    __or__ = partialmethod(_apply, "Or")
    __invert__ = partialmethod(_apply, "Not")
    __lt__ = partialmethod(_apply, "Less")
    __gt__ = partialmethod(_apply, "Greater")
    __ge__ = partialmethod(_apply, "GreaterOrEqual")
    __eq__ = partialmethod(_apply, "Equal")  # type: ignore[assignment]

    def __rsub__(self, other: ValueLike) -> Value:
        return self.graph.Sub(other, self)

    __hash__ = object.__hash__


class Graph:
    """Nodes in the order in which they were added, and the weights that they read.

    `graph.Relu(x)` adds a node of this operator and returns its output; keyword arguments are its attributes.
    """

    def __init__(self, precision: str = "fp32") -> None:
        self.precision = precision
        self.nodes: list[onnx.NodeProto] = []  # of the main graph, or of the loop's body that is being built
        self.initializers: list[onnx.TensorProto] = []
        self._constants: dict[tuple[str, Any], Value] = {}
        self._count = 0

    def __getattr__(self, operator: str) -> Callable[..., Any]:
        if operator.startswith("_"):
            raise AttributeError(operator)

        def add_node(*inputs: ValueLike, outputs: int = 1, **attributes: Any) -> Any:
            names = ["" if value is None else self.value(value).name for value in inputs]
            results = [self._new() for _ in range(outputs)]
            self.nodes.append(helper.make_node(operator, names, [value.name for value in results], **attributes))
            return results[0] if outputs == 1 else results

        return add_node

    # --- Constants and weights ---------------------------------------------------------------------------------------

    def value(self, value: ValueLike) -> Value:
        """The value of the graph for a tensor or numbers."""
        if isinstance(value, Value):
            return value
        if isinstance(value, torch.Tensor):
            return self._initializer(value.detach().cpu().numpy())
        if isinstance(value, np.ndarray):
            return self._initializer(value)
        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        key = (str(array.dtype), (array.shape, array.tobytes()))
        if key not in self._constants:
            self._constants[key] = self._initializer(array)
        return self._constants[key]

    def weight(self, weight: torch.Tensor) -> Value:
        """A weight in float32, saved in the precision of the graph."""
        stored, scale = self._stored(weight)
        values = self.value(stored) if stored.dtype == torch.float32 else self.cast(stored, "float32")
        return values if scale is None else values * scale

    def rows(self, table: torch.Tensor, index: Value) -> Value:
        """Rows (…, d) in float32 of a weight (N, d) that is saved and read in the precision of the graph."""
        stored, scale = self._stored(table)
        rows = self.cast(self.Gather(stored, index), "float32")
        return rows if scale is None else rows * self.Gather(scale, index)

    def _stored(self, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The weight as it is saved, and the scale of each of its rows, if there are any."""
        if self.precision == "int8" and weight.dim() > 1 and weight.numel() >= FEWEST_QUANTIZED:
            scale = (weight.float().abs().amax(-1, keepdim=True) / 127).clamp(min=torch.finfo(torch.float32).tiny)
            return (weight / scale).round().to(torch.int8), scale
        half = weight.half()  # weights that were saved in 16 bits stay so
        return (half if self.precision == "fp16" or torch.equal(half.to(weight.dtype), weight) else weight), None

    def linear(self, inputs: Value, layer: Any) -> Value:
        """A linear layer: (…, d) → (…, out_features)."""
        products = inputs @ self.transpose(self.weight(layer.weight), 1, 0)
        return products if layer.bias is None else products + self.weight(layer.bias)

    # --- Shapes and types --------------------------------------------------------------------------------------------

    def cast(self, value: ValueLike, dtype: str) -> Value:
        """The value in another type."""
        return self.Cast(value, to=_TYPES[dtype])

    def size(self, value: Value, axis: int) -> Value:
        """The size of an axis, (1,)."""
        return self.Shape(value, start=axis, end=axis + 1)

    def shape(self, *sizes: Value | int) -> Value:
        """A shape from sizes (1,) and numbers."""
        return self.Concat(*([size] if isinstance(size, int) else size for size in sizes), axis=0)

    def reshape(self, value: Value, *sizes: Value | int) -> Value:
        """The value in another shape."""
        if all(isinstance(size, int) for size in sizes):
            return self.Reshape(value, list(sizes))
        return self.Reshape(value, self.shape(*sizes))

    def transpose(self, value: Value, *axes: int) -> Value:
        """The value with its axes in this order."""
        return self.Transpose(value, perm=axes)

    def unsqueeze(self, value: ValueLike, *axes: int) -> Value:
        """The value with new axes of size 1."""
        return self.Unsqueeze(value, list(axes))

    def squeeze(self, value: Value, *axes: int) -> Value:
        """The value without axes of size 1."""
        return self.Squeeze(value, list(axes))

    def concat(self, *values: ValueLike, axis: int = -1) -> Value:
        """The values concatenated along an axis."""
        return self.Concat(*values, axis=axis) if len(values) > 1 else self.value(values[0])

    def stack(self, *values: Value, axis: int = 0) -> Value:
        """The values along a new axis."""
        return self.Concat(*(self.unsqueeze(value, axis) for value in values), axis=axis)

    def slice(self, value: Value, start: Value | int, stop: Value | int | None, axis: int) -> Value:
        """A part of the value along an axis, up to its end if `stop` is None."""
        bounds = [[bound] if isinstance(bound, int) else bound for bound in (start, 2**62 if stop is None else stop)]
        return self.Slice(value, *bounds, [axis])

    def split(self, value: Value, parts: int, axis: int = -1) -> list[Value]:
        """Parts of equal size."""
        return self.Split(value, axis=axis, num_outputs=parts, outputs=parts)

    def arange(self, size: Value) -> Value:
        """The integers from 0 to a size (1,), excluded."""
        return self.Range(0, self.squeeze(size, 0), 1)

    def filled(self, number: float, *sizes: Value | int, dtype: Any = np.float32) -> Value:
        """A tensor of one number."""
        fill = numpy_helper.from_array(np.array([number], dtype))
        return self.ConstantOfShape(self.shape(*sizes), value=fill)

    # --- Computations ------------------------------------------------------------------------------------------------

    def sum(self, value: Value, axis: int, keep: bool = False) -> Value:
        """The sum along an axis."""
        return self.ReduceSum(value, [axis], keepdims=int(keep))

    def max(self, value: Value, axis: int, keep: bool = False) -> Value:
        """The maximum along an axis."""
        return self.ReduceMax(value, [axis], keepdims=int(keep))

    def any(self, value: Value, axis: int) -> Value:
        """True if any entry along an axis is true."""
        return self.cast(self.max(self.cast(value, "int32"), axis), "bool")

    def pick(self, values: Value, index: Value) -> Value:
        """One entry of the last axis: values (…, K), index (…) → (…)."""
        return self.squeeze(self.GatherElements(values, self.unsqueeze(index, -1), axis=-1), -1)

    def pick_rows(self, values: Value, index: Value) -> Value:
        """Rows of each sentence: values (B, N, d), index (B, …) → (B, …, d)."""
        return self.GatherND(values, self.unsqueeze(index, -1), batch_dims=1)

    def scan(
        self, body: Callable[..., Sequence[Value]], states: Sequence[ValueLike], inputs: Sequence[ValueLike]
    ) -> list[Value]:
        """Loop over the first axis of the inputs.

        Args:
            body: Called with the states and one entry of each input; returns the new states and the outputs.
            states: The states before the first step.
            inputs: Tensors with the same number of entries.

        Returns:
            The last states, and the stacked outputs of all steps.
        """
        graph, count = self._body(body, len(states) + len(inputs))
        results = self.Scan(*states, *inputs, outputs=count, body=graph, num_scan_inputs=len(inputs))
        return results if count > 1 else [results]

    def loop(
        self, body: Callable[..., Sequence[Value]], states: Sequence[ValueLike], times: Value | None = None
    ) -> list[Value]:
        """Loop a number of times, or as long as the body returns true.

        Args:
            body: Called with the number of the step, from 0, and the states; returns true to continue, the new states,
                and the outputs.
            states: The states before the first step.
            times: The maximum number of steps, a scalar; by default there is none.

        Returns:
            The last states, and the stacked outputs of all steps.
        """
        graph, count = self._body(lambda step, _, *rest: body(step, *rest), 2 + len(states))
        for port, dtype in zip(graph.input, ("int64", "bool"), strict=False):
            port.CopyFrom(helper.make_tensor_value_info(port.name, _TYPES[dtype], []))
        return self.Loop(times, True, *states, outputs=count - 1, body=graph)

    def _body(self, body: Callable[..., Sequence[Value]], count: int) -> tuple[onnx.GraphProto, int]:
        """Build the body of a loop with `count` inputs; return it with the number of its results.

        Its values have no types, which ONNX infers from the values outside.
        """
        outer, self.nodes = self.nodes, []
        inputs = [self._new() for _ in range(count)]
        outputs = [self.Identity(value) for value in body(*inputs)]
        infos = [[onnx.ValueInfoProto(name=value.name) for value in values] for values in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "body", infos[0], infos[1])
        self.nodes = outer
        return graph, len(outputs)

    def include(self, model: onnx.ModelProto, inputs: Sequence[Value]) -> Value:
        """Add the nodes and weights of another model, under their names, and return its only output."""
        for port, value in zip(model.graph.input, inputs, strict=True):
            self.nodes.append(helper.make_node("Identity", [value.name], [port.name]))
        for tensor in model.graph.initializer:
            array = numpy_helper.to_array(tensor)
            if array.dtype == np.float32:
                weight = self.weight(torch.from_numpy(array.copy()))
                self.nodes.append(helper.make_node("Identity", [weight.name], [tensor.name]))
            else:
                self.initializers.append(tensor)
        for node in model.graph.node:
            del node.metadata_props[:]  # source code and paths
            self.nodes.append(node)
        return Value(self, model.graph.output[0].name)

    # --- The model ---------------------------------------------------------------------------------------------------

    def model(
        self, inputs: dict[str, tuple[str, list[str | int]]], outputs: dict[str, tuple[Value, str, list[str | int]]]
    ) -> onnx.ModelProto:
        """The finished model.

        Args:
            inputs: Types and shapes of the inputs; sizes that are names are variable.
            outputs: The values that are returned, with types and shapes.
        """
        for name, (value, _, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], [name]))
        infos = [
            [helper.make_tensor_value_info(name, _TYPES[dtype], shape) for name, (*_, dtype, shape) in group.items()]
            for group in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "tagger", infos[0], infos[1], self.initializers)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="hf_xorner")

    def _new(self) -> Value:
        self._count += 1
        return Value(self, f"value_{self._count}")

    def _initializer(self, array: np.ndarray) -> Value:
        value = self._new()
        self.initializers.append(numpy_helper.from_array(array, value.name))
        return value
