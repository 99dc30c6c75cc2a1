"""Names that stay the same from one compile to the next."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pvanalyse.analysis.stable_names import layer_of, stable_name

NUMBERED = {
    "scores#12": "scores",
    "a/scores#12:0": "a/scores:0",
    "copy85_/Copy": "copy_/Copy",
    "copy85_bert/encoder/layer_1": "copy_bert/encoder/layer_1",
    "preArrange12_": "preArrange_",
    "fusion.123": "fusion",
    "%loop_fusion.7": "%loop_fusion",
    "add.45_remat": "add_remat",
    "encoder/MatMul_1234:0": "encoder/MatMul:0",
    "encoder/MatMul_1234/Conv_1/Convolve": "encoder/MatMul/Conv_1/Convolve",
    "gelu__t345": "gelu",
    "x_123#4_456": "x",
    "v1_123": "v",
    "t1234": "t",
    "v12#3": "v",
    "vertex.0x7f31a0": "vertex.0x",
}
KEPT = (
    "bert/encoder/layer_1/attention/self/scores:0", "encoder/layer_123/weights", "resnet.50/conv2d_1", "layer.1/attn",
    "blocks.12.mlp", "matmulGrouped/Conv_1/ExchangePre", "dense_1024/weights", "mobilenet/v2/x", "conv2", "t5x/v2",
    "#1", "_123", "", "/", "poplin::ConvPartial1x1Out<half,half,true,false,16,4,false>", "Gradient___a/b", "a:10",
)  # fmt: skip


@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_of_the_compiler_are_taken_away(name: str) -> None:
    assert stable_name(name) == NUMBERED[name]


@pytest.mark.parametrize("name", KEPT)
def test_numbers_that_say_which_are_kept(name: str) -> None:
    assert stable_name(name) == name


PIECES = st.sampled_from(
    ["a", "copy85_", "#12", "_123", "_1", "t1234", "v1", "fusion.12", ".7", ":0", "/", "layer_", "layer_123", "__t99",
     "0x1234", "0xabcd", "%add.1", "9", "_", "tmp3"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=30))
def test_a_stable_name_is_stable_and_never_empty(name: str) -> None:
    # WHEN a stable name is made stable again
    stable = stable_name(name)
    # THEN nothing changes; and no part between slashes was lost
    assert stable_name(stable) == stable
    assert [bool(part) for part in stable.split("/")] == [bool(part) for part in name.split("/")]


def test_a_name_that_nobody_made_is_left_alone_at_once() -> None:
    # GIVEN names on which careless patterns would take for ever
    for name in ("_123" * 100_000 + "x", "#1" * 100_000 + "x", "copy1" * 100_000, "add.1" + ".1" * 100_000 + "x"):
        # THEN they stay as they are
        assert stable_name(name) == name


def test_the_layer_is_the_path_of_a_name() -> None:
    assert layer_of("bert/encoder/layer_1/scores:0") == "bert/encoder/layer_1"
    assert layer_of("stack") == ""
