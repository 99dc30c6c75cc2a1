"""Networks as lists of operations, in the order of the forward pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["matmul", "conv", "softmax", "norm", "elementwise", "gather", "pool", "loss"]
ELEMENT_BYTES = {"half": 2, "float": 4, "unsigned int": 4}


@dataclass(frozen=True)
class Source:
    """Where the user wrote an operation."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Operation:
    """One operation of the user's model.

    Attributes
    ----------
    name
        Path in the model.
    shape, element_type
        Of its output.
    weights
        Shape of its parameter, or () when it has none.
    flops
        Of the forward pass.
    stage
        IPU of the replica on which it runs.
    kept
        Until when the output lives in training: "backward" (needed there), "recomputed" (dropped and made again there)
        or "forward" (only the next operation needs it).
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    element_type: str
    weights: tuple[int, ...]
    flops: int
    source: Source
    stage: int = 0
    kept: Literal["backward", "recomputed", "forward"] = "backward"

    @property
    def elements(self) -> int:
        """Elements of the output."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the output."""
        return self.elements * ELEMENT_BYTES[self.element_type]

    @property
    def weight_elements(self) -> int:
        """Elements of the parameter."""
        return math.prod(self.weights) if self.weights else 0


@dataclass(frozen=True)
class Regression:
    """A change that costs memory: one layer keeps its attention scores in single precision for the backward pass."""

    layer: int
    source: Source


SCORES_LINE = 87
ATTENTION = "model/attention.py"


def transformer(
    layers: int, stages: int, hidden: int, sequence: int, batch: int, regression: Regression | None = None
) -> list[Operation]:
    """Return an encoder in the manner of BERT: embeddings, `layers` layers, a loss; layers are dealt out to stages."""
    operations = [
        Operation(
            "bert/embeddings/Gather",
            "gather",
            (batch, sequence, hidden),
            "half",
            (1024, hidden),
            0,
            Source("model/embedding.py", 31, "Embedding.forward"),
        )
    ]
    for layer in range(layers):
        stage = layer * stages // layers
        encoder = _encoder_layer(f"bert/encoder/layer_{layer}", hidden, sequence, batch)
        operations += [replace(operation, stage=stage) for operation in encoder]
    if regression is not None:
        operations = [_regressed(operation, regression) for operation in operations]
    operations.append(
        Operation(
            "bert/cls/loss/NllLoss",
            "loss",
            (batch, 16),
            "float",
            (),
            64 * batch * hidden,
            Source("train.py", 142, "training_step"),
            stages - 1,
            "forward",
        )
    )
    return operations


def _regressed(operation: Operation, regression: Regression) -> Operation:
    if operation.name != f"bert/encoder/layer_{regression.layer}/attention/self/scores":
        return operation
    return replace(operation, element_type="float", kept="backward", source=regression.source)


def _encoder_layer(scope: str, hidden: int, sequence: int, batch: int) -> Iterator[Operation]:
    heads = max(hidden // 64, 1)
    tokens = batch * sequence
    narrow, wide, scores = (batch, sequence, hidden), (batch, sequence, 4 * hidden), (batch, heads, sequence, sequence)
    feed = "model/feed_forward.py"

    def dense(name: str, inputs: int, outputs: int, source: Source) -> Operation:
        shape = (batch, sequence, outputs)
        return Operation(
            f"{scope}/{name}/MatMul", "matmul", shape, "half", (inputs, outputs), 2 * tokens * inputs * outputs, source
        )

    def mixing(name: str, shape: tuple[int, ...], line: int, kept: Literal["backward", "forward"]) -> Operation:
        flops = 2 * tokens * sequence * hidden
        source = Source(ATTENTION, line, "SelfAttention.forward")
        return Operation(f"{scope}/attention/self/{name}", "matmul", shape, "half", (), flops, source, kept=kept)

    yield dense("attention/self/qkv", hidden, 3 * hidden, Source(ATTENTION, 74, "SelfAttention.forward"))
    yield mixing("scores", scores, SCORES_LINE, "forward")
    yield Operation(
        f"{scope}/attention/self/Softmax",
        "softmax",
        scores,
        "half",
        (),
        5 * math.prod(scores),
        Source(ATTENTION, 91, "SelfAttention.forward"),
    )
    yield mixing("context", narrow, 95, "backward")
    yield dense("attention/output/dense", hidden, hidden, Source(ATTENTION, 113, "SelfOutput.forward"))
    yield Operation(
        f"{scope}/attention/output/LayerNorm",
        "norm",
        narrow,
        "half",
        (2, hidden),
        8 * math.prod(narrow),
        Source(ATTENTION, 116, "SelfOutput.forward"),
        kept="forward",
    )
    yield dense("intermediate/dense", hidden, 4 * hidden, Source(feed, 22, "FeedForward.forward"))
    yield Operation(
        f"{scope}/intermediate/Gelu",
        "elementwise",
        wide,
        "half",
        (),
        12 * math.prod(wide),
        Source(feed, 23, "FeedForward.forward"),
        kept="recomputed",
    )
    yield dense("output/dense", 4 * hidden, hidden, Source(feed, 24, "FeedForward.forward"))


def convolutional(layers: int, stages: int, channels: int, size: int, batch: int) -> list[Operation]:
    """Return an image network: `layers` blocks of convolution, norm and ReLU, a classifier and a loss."""
    file = "resnet/model.py"
    operations = []
    width = channels
    for layer in range(layers):
        stage = layer * stages // layers
        scope = "resnet/stem" if layer == 0 else f"resnet/block_{layer}"
        shape = (batch, width, size, size)
        weights = (width, 3 if layer == 0 else width, 3, 3)
        flops = 2 * math.prod(shape) * math.prod(weights[1:])
        operations += [
            Operation(f"{scope}/Conv2D", "conv", shape, "half", weights, flops, Source(file, 41, "conv_block"), stage),
            Operation(
                f"{scope}/GroupNorm",
                "norm",
                shape,
                "half",
                (2, width),
                8 * math.prod(shape),
                Source(file, 44, "conv_block"),
                stage,
                "forward",
            ),
            Operation(
                f"{scope}/Relu",
                "elementwise",
                shape,
                "half",
                (),
                math.prod(shape),
                Source(file, 45, "conv_block"),
                stage,
            ),
        ]
        if layer % 2 == 1:
            size = max(size // 2, 4)
            source = Source(file, 52, "downsample")
            shape = (batch, width, size, size)
            operations.append(
                Operation(f"{scope}/MaxPool", "pool", shape, "half", (), 4 * math.prod(shape), source, stage, "forward")
            )
            width = min(width * 2, 8 * channels)
    last = stages - 1
    operations += [
        Operation(
            "resnet/logits/MatMul",
            "matmul",
            (batch, 1000),
            "half",
            (operations[-1].shape[1], 1000),
            2 * batch * operations[-1].shape[1] * 1000,
            Source(file, 78, "classifier"),
            last,
        ),
        Operation(
            "resnet/loss/SparseSoftmaxCrossEntropy",
            "loss",
            (batch, 16),
            "float",
            (),
            batch * 4000,
            Source("resnet/train.py", 66, "loss_fn"),
            last,
            "forward",
        ),
    ]
    return operations
