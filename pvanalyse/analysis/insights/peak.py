"""Rules on the liveness peak: what makes it, and what would lower it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.insights.facts import Facts
from pvanalyse.analysis.insights.model import Evidence, Insight, count, insight, rule, share, size, step, text
from pvanalyse.analysis.liveness import peaks
from pvanalyse.analysis.peak_reduction import explain_peak, fp16_candidates

_BATCH_KEYS = ("batch", "batchsize", "microbatch", "microbatchsize")


@rule("peak-concentration")
def peak_concentration(facts: Facts) -> Insight | None:
    """Whether a few variables hold much of the liveness peak."""
    top = facts.live[: facts.limits.peak_variables]
    held, peak = int(top["bytes"].sum()), facts.peak_bytes
    if len(facts.live) <= len(top) or held < facts.limits.peak_concentration * peak:
        return None
    without = explain_peak(facts.source, 1)["peak_after_bytes"].to_numpy(np.int64)
    after = int(without[0]) if len(without) else peak
    return insight(
        facts.saving_severity,
        "{num_variables} of {num_live} variables hold {held_fraction} of the liveness peak of {peak_bytes} at step "
        "{peak_step}.",
        count("num_variables", len(top)),
        count("num_live", len(facts.live)),
        size("held_bytes", held),
        share("held_fraction", held / peak),
        size("peak_bytes", peak),
        step("peak_step", facts.peak.step),
        size("largest_variable_bytes", top["bytes"].iloc[0]),
        size("peak_without_largest_bytes", after),
        *_where(facts),
        advice="Shrinking these, or freeing them before this step, lowers the peak until the next one: split the "
        "operation at the peak, or lower its share of memory for temporaries.",
        options=(
            "PopTorch: Options.setAvailableMemoryProportion",
            "PopLibs: availableMemoryProportion",
        ),
        saving_bytes=facts.replicas * (peak - after),
        variables=top["name"].tolist(),
    )


def _where(facts: Facts) -> list[Evidence]:
    found = peaks(facts.source)
    if found.empty:
        return []
    first = found.iloc[0]
    known = {
        "program": f"{first['program_type']} {first['program_name']}".strip(),
        "operation": first["operation"],
        "location": first["location"],
    }
    return [text(name, value) for name, value in known.items() if value]


@rule("recomputation")
def recomputation(facts: Facts) -> Insight | None:
    """Whether activations that live long make much of the peak and could be computed again instead."""
    frame = facts.activations
    lifetime = frame["step_end"] - frame["step_begin"]
    candidates = frame[lifetime >= max(1.0, facts.limits.long_lifetime * facts.peak.num_steps)]
    held, peak = int(candidates["bytes"].sum()), facts.peak_bytes
    if not held or held < facts.limits.recomputation * peak:
        return None
    saving = peak - _peak_without(facts.curve, candidates)
    if saving <= 0:
        return None
    return insight(
        facts.saving_severity,
        "{num_candidates} activations that live long hold {candidate_bytes}, {candidate_fraction} of the liveness "
        "peak; computing them again would lower it by up to {saving_of_replica_bytes}.",
        count("num_candidates", len(candidates)),
        size("candidate_bytes", held),
        share("candidate_fraction", held / peak),
        size("peak_bytes", peak),
        step("peak_step", facts.peak.step),
        count("longest_lifetime_steps", int((candidates["step_end"] - candidates["step_begin"]).max())),
        count("num_steps", facts.peak.num_steps),
        size("saving_of_replica_bytes", saving),
        advice="Compute activations again in the backward pass instead of keeping them, from checkpoints at the ends "
        "of layers. The estimate frees each between the step that makes it and the last that needs it, and adds "
        "the largest of them back; what has to be kept as checkpoints comes off it. It costs the time of computing "
        "twice.",
        options=(
            "PopART: SessionOptions.autoRecomputation",
            "PopTorch: poptorch.recomputationCheckpoint",
            "TensorFlow: IPUConfig.allow_recompute",
        ),
        saving_bytes=facts.replicas * saving,
        variables=candidates["name"].tolist()[: facts.limits.shown],
    )


def _peak_without(curve: Integers, candidates: pd.DataFrame) -> int:
    """Return the peak when candidates are gone between their first and last step, but for the largest gone at a step.

    That one stands for what is being computed again.
    """
    gone, again = np.zeros_like(curve), np.zeros_like(curve)
    for begin, end, size_of_one in candidates[["step_begin", "step_end", "bytes"]].itertuples(index=False):
        inside = slice(max(0, begin + 1), max(0, end - 1))
        gone[inside] += size_of_one
        again[inside] = np.maximum(again[inside], size_of_one)
    return int((curve - gone + again).max())


@rule("batch-size")
def batch_size(facts: Facts) -> Insight | None:
    """Whether much of the peak grows with the batch, so that a smaller one would save."""
    frame = facts.activations
    held, peak = int(frame["bytes"].sum()), facts.peak_bytes
    stated = _stated_batch_size(facts)
    if stated == 1 or not held or held < facts.limits.batch * peak:
        return None
    saving = held // 2
    return insight(
        facts.saving_severity,
        "About {batch_bytes}, {batch_fraction} of the liveness peak, grows with the batch; half the batch would save "
        "about {saving_of_replica_bytes}.",
        size("batch_bytes", held),
        share("batch_fraction", held / peak),
        size("peak_bytes", peak),
        count("num_variables", len(frame)),
        size("saving_of_replica_bytes", saving),
        *([] if stated is None else [count("batch_size", stated)]),
        advice="Halve the micro-batch and double the gradient accumulation: the batch that the weights see is the "
        "same. The estimate counts every declared variable live at the peak that does not have the shape of an "
        "always-live one, as gradients of weights have.",
        options=(
            "PopTorch: Options.Training.gradientAccumulation",
            "PopART: SessionOptions.enableGradientAccumulation",
            "PopART: SessionOptions.accumulationFactor",
        ),
        saving_bytes=facts.replicas * saving,
        variables=frame["name"].tolist()[: facts.limits.shown],
    )


def _stated_batch_size(facts: Facts) -> int | None:
    """Return the batch size that app.json states, None when it states none or several."""
    if not facts.source.captured("app"):
        return None
    columns = facts.source.arrow("app", ["key", "value"])
    pairs = zip(columns.column(0).to_pylist(), columns.column(1).to_pylist(), strict=True)
    sizes = {
        value
        for key, value in pairs
        if (key or "").rpartition(".")[2].replace("_", "").replace("-", "").lower() in _BATCH_KEYS
    }
    only = sizes.pop() if len(sizes) == 1 else None
    return int(only) if only is not None and only.isascii() and only.isdecimal() and len(only) < 10 else None


@rule("fp16")
def fp16(facts: Facts) -> Insight | None:
    """Whether single-precision variables take much where memory is tightest."""
    frame = fp16_candidates(facts.source, facts.limits.fp16_tiles)
    if frame.empty:
        return None
    num_tiles = len(facts.memory["tile"])
    by_tile = bool(frame["num_tiles"].notna().all())
    looked_at = min(facts.limits.fp16_tiles, num_tiles) if by_tile else max(1, num_tiles // facts.replicas)
    of_tile = int(frame["saving_bytes"].sum()) / looked_at
    if of_tile < facts.limits.fp16 * facts.bytes_per_tile:
        return None
    at_peak = int(facts.live.loc[facts.live["element_type"] == "float", "bytes"].sum()) // 2
    where = "the {num_tiles} tiles with the highest peaks" if by_tile else "the {num_tiles} tiles of a replica"
    return insight(
        facts.saving_severity,
        "{num_candidates} variables of single precision are live where memory is tightest; in half precision they "
        f"would take {{saving_per_tile_bytes}} less on the mean of {where}.",
        count("num_candidates", len(frame)),
        size("saving_per_tile_bytes", of_tile),
        share("saving_fraction_of_tile", of_tile / facts.bytes_per_tile),
        count("num_tiles", looked_at),
        size("saving_at_peak_of_replica_bytes", at_peak),
        advice="Hold activations in half precision, and weights and gradients where training allows it. What must "
        "stay in single precision, such as a loss or statistics of a norm, is usually small.",
        options=("PopTorch: Model.half", "PopTorch: Options.Precision.setPartialsType",
                 "PopART: SessionOptions.partialsTypeMatMuls"),
        saving_bytes=facts.replicas * at_peak,
        tiles=frame["largest_tile"].drop_duplicates().tolist()[: facts.limits.shown] if by_tile else (),
        variables=frame["name"].tolist()[: facts.limits.shown],
    )  # fmt: skip
