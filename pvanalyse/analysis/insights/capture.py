"""Rules on the capture itself: how large it is, and whether its numbers agree with each other."""

from __future__ import annotations

from pvanalyse.analysis.consistency import findings
from pvanalyse.analysis.insights.facts import Facts
from pvanalyse.analysis.insights.model import Insight, count, insight, rule, size, text
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import PROFILE, table


@rule("profile-size")
def profile_size(facts: Facts) -> Insight | None:
    """Whether profile.pop is large, and what would make it smaller."""
    if facts.profile_bytes is None:
        known = facts.source.captured("target")
        raise NotCaptured(f"size of {PROFILE}", "give it as profile_bytes" if known else table("target").capture)
    if facts.profile_bytes < facts.limits.profile_bytes:
        return None
    counts = {name: facts.source.count(name) for name in ("runs", "execution_steps", "lowered_variables")}
    options = {
        "autoReport.executionProfileProgramRunCount": counts["runs"] > 1,
        "profiler.programs.filter": counts["execution_steps"] > 0,
        "autoReport.outputLoweredVars": counts["lowered_variables"] > 0,
        "autoReport.outputExecutionProfile": counts["execution_steps"] > 0,
    }
    return insight(
        "advice",
        "profile.pop has {profile_bytes}: {execution_steps} executed steps in {runs} runs, and {lowered_variables} "
        "lowered variables.",
        size("profile_bytes", facts.profile_bytes),
        *(count(name, number) for name, number in counts.items()),
        advice="Record fewer runs, run fewer iterations of a smaller batch, profile only the programs of interest, or "
        "leave out the lowered variables or the execution when they are not what is asked.",
        options=[name for name, concerned in options.items() if concerned],
    )


@rule("consistency")
def consistency(facts: Facts) -> Insight | None:
    """Whether stored numbers disagree with what the lowered variables add up to."""
    frame = findings(facts.source)
    if frame.empty:
        if not facts.source.captured("lowered_variables"):
            raise NotCaptured("lowered_variables", table("lowered_variables").capture)
        return None
    frame = frame.assign(size=frame["difference"].abs()).sort_values("size", ascending=False, kind="stable")
    worst = frame.iloc[0]
    tiles = frame["tile"].dropna().drop_duplicates().tolist()
    return insight(
        "warning",
        "{num_findings} stored numbers disagree with what the lowered variables add up to, most '{quantity}': "
        "{stored_bytes} stored, {computed_bytes} computed.",
        count("num_findings", len(frame)),
        text("quantity", worst["quantity"]),
        size("stored_bytes", worst["stored"]),
        size("computed_bytes", worst["computed"]),
        *(
            count(f"disagreements_of_{str(name).replace(' ', '_')}", number)
            for name, number in frame["quantity"].value_counts().items()
        ),
        advice="The file may be damaged or incomplete, or its dialect may read a column as what it is not: compare "
        "with another capture before relying on numbers of these tiles.",
        tiles=tiles[: facts.limits.shown],
    )
