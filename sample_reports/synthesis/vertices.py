"""Vertex types: what a compute set is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VertexType:
    """A kind of vertex.

    Attributes
    ----------
    name
        As PopLibs spells its codelets.
    instance_bytes, code_bytes
        State of one instance; machine code, once per tile.
    edges
        Edges of one instance.
    elements_per_cycle
        How fast one tile works through output elements.
    """

    name: str
    instance_bytes: int
    code_bytes: int
    edges: int
    elements_per_cycle: float

    @property
    def symbol(self) -> str:
        """Entry symbol of the codelet in the tile's executable."""
        return "__runCodelet_" + "".join(c if c.isalnum() else "_" for c in self.name)


_NAMES = {
    "copy": ("poplar_rt::DstStridedCopy64BitMultiAccess<{0}>", 16, 212, 2, 8.0),
    "convolve": ("poplin::ConvPartial1x1Out<{0},{0},true,false,16,4,false>", 40, 1_564, 3, 0.0),
    "reduce": ("popops::Reduction<popops::ReduceAdd,float,{0},false,popops::ReductionSpecialisation::STRIDED_REDUCE>",
               24, 660, 2, 2.0),
    "softmax": ("popnn::NonLinearitySoftmax<{0}>", 20, 1_208, 2, 0.25),
    "norm": ("popops::ScaledReduceLayerNorm<{0},float>", 28, 932, 4, 0.5),
    "elementwise": ("popnn::NonLinearity2D<{0},popnn::NonLinearityType::GELU>", 12, 508, 1, 1.0),
    "elementwise_grad": ("popnn::NonLinearityGrad2D<{0},popnn::NonLinearityType::GELU>", 20, 544, 3, 0.8),
    "gather": ("popops::MultiSlice<{0}>", 24, 420, 3, 4.0),
    "gather_grad": ("popops::MultiUpdateAdd<{0},{0},false,popops::Operation::ADD>", 28, 476, 3, 1.0),
    "pool": ("popnn::pooling::MaxPooling<{0}>", 28, 716, 2, 0.5),
    "pool_grad": ("popnn::pooling::MaxPoolingGradient<{0}>", 36, 804, 4, 0.4),
    "loss": ("popnn::LossSumSquaredTransform<{0}>", 20, 348, 3, 0.5),
    "cast": ("popops::Cast<{0},float>", 12, 184, 2, 2.0),
    "update": ("popops::ScaledAddSupervisor<{0},float,float,false>", 20, 396, 3, 2.0),
    "add": ("popops::BinaryOp2D<popops::expr::BinaryOpType::ADD,{0}>", 16, 292, 3, 2.0),
}  # fmt: skip


def vertex_type(role: str, element_type: str) -> VertexType:
    """Return the vertex type of a role such as "convolve"; single precision takes more code and time."""
    name, instance, code, edges, speed = _NAMES[role]
    single = element_type == "float"
    return VertexType(
        name.format(element_type), instance, code + (code // 8 * 4 if single else 0), edges, speed / (1 + single)
    )
