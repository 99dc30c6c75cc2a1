"""Where the cycles go, by brute force: cycle by cycle and row by row, from the definitions, over sqlite3."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.oracle.frames import Answer, Captured, Missing, Row, answer, numbers

KINDS = {"OnTileExecute": "compute", "DoExchange": "exchange", "GlobalExchange": "inter-IPU", "StreamCopyBegin": "host",
         "StreamCopyMid": "host", "StreamCopyEnd": "host", "Sync": "sync", "SyncAns": "sync"}  # fmt: skip
FLOPS = {"Ipu1": 64, "Ipu2": 128}


class Execution:
    """The rows of steps on IPUs of some runs and IPUs, each with its run, program, type, name and kind."""

    def __init__(
        self, captured: Captured, runs: Sequence[int] | None = None, ipus: Sequence[int] | None = None
    ) -> None:
        self.captured, self.runs = captured, runs
        self.programs = {row["program_id"]: row for row in captured.get("programs", [])}
        steps = {step["step_id"]: step for step in captured["execution_steps"]}
        self.rows: list[Row] = []
        for row in captured["execution_step_ipus"]:
            step = steps.get(row["step_id"])
            if step and (runs is None or step["run_id"] in runs) and (ipus is None or row["ipu"] in ipus):
                program = self.programs.get(step["program_id"], {"type": "Unknown", "name": ""})
                kind = KINDS.get(program["type"], "other")
                self.rows.append({**row, **step, "type": program["type"], "name": program["name"], "kind": kind})

    def groups(self, *keys: str) -> dict[tuple[Any, ...], list[Row]]:
        found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in self.rows:
            found[tuple(row[key] for key in keys)].append(row)
        return dict(sorted(found.items()))

    @property
    def clock(self) -> float:
        return float(self.captured.target["clock_frequency"])

    def span(self, run: int) -> tuple[int, int]:
        mine = [row for row in self.rows if row["run_id"] == run]
        return min(row["all_from_min"] for row in mine), max(row["all_to_max"] for row in mine)


def active(rows: Iterable[Row]) -> set[int]:
    return {cycle for row in rows for cycle in range(row["active_from_max"], row["active_to_max"])}


def anywhere(rows: Iterable[Row]) -> set[int]:
    return {cycle for row in rows for cycle in range(row["all_from_min"], row["all_to_max"])}


def stretches(cycles: set[int]) -> list[tuple[int, int]]:
    return [
        (cycle, next(end for end in range(cycle, max(cycles) + 2) if end not in cycles))
        for cycle in sorted(cycles) if cycle - 1 not in cycles
    ]  # fmt: skip


def fraction(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def costs(e: Execution, key: Callable[[Row], tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[int, int, float | None]]:
    """Return steps, cycles and share by a key, the most cycles first."""
    steps: Counter[Any] = Counter()
    cycles: Counter[Any] = Counter()
    for row in e.rows:
        steps[key(row)] += 1
        cycles[key(row)] += row["cycles"]
    total = sum(cycles.values())
    order = sorted(steps, key=lambda one: (-cycles[one], one))
    return {one: (steps[one], cycles[one], fraction(cycles[one], total)) for one in order}


def known(program: int) -> int | None:
    return program if program >= 0 else None


# ------------------------------------------------------------------------------------------------------------ answers
def runs_frame(e: Execution) -> Answer:
    named = {row["run_id"]: row for row in e.captured.get("runs", [])}
    run_ids = sorted(e.runs) if e.runs is not None else sorted({*named, *(row["run_id"] for row in e.rows)})
    rows = []
    for run in run_ids:
        mine = [row for row in e.rows if row["run_id"] == run]
        one = named.get(run, {"name": "", "start_us": None, "end_us": None})
        cycles = e.span(run)[1] - e.span(run)[0] if mine else None
        waits = [row["cycles"] for row in mine if row["type"] == "StreamCopyBegin"]
        host = None if one["end_us"] is None else one["end_us"] - one["start_us"]
        rows.append([run, one["name"], one["start_us"], one["end_us"], host, len({row["step_id"] for row in mine}), cycles,
                     None if cycles is None else cycles / e.clock, max(waits, default=None), False])  # fmt: skip
    if len(rows) > 1:
        first, later = rows[0], [row[8] or 0 for row in rows[1:]]
        wait = first[8] or 0
        rows[0][9] = first[6] is not None and first[6] > 0 and wait > first[6] / 10 and wait >= 10 * max(1, *later)
    columns = "run_id name start_us end_us host_us num_steps cycles seconds host_wait_cycles distorted"
    return answer(columns, [tuple(row) for row in rows])


def by_type(e: Execution) -> Answer:
    found = costs(e, lambda row: (row["type"], row["kind"]))
    return answer("type kind num_steps cycles fraction", [(*key, *cost) for key, cost in found.items()])


def by_type_per_run_and_ipu(e: Execution) -> Answer:
    rows = []
    for (run, ipu), mine in e.groups("run_id", "ipu").items():
        part = Execution.__new__(Execution)
        part.rows = mine
        rows += [(run, ipu, *row) for row in by_type(part)[1]]
    return answer("run_id ipu type kind num_steps cycles fraction", rows)


def by_program(e: Execution) -> Answer:
    rows = []
    for key, cost in costs(e, lambda row: (row["program_id"], row["type"], row["name"])).items():
        longest = max(row["cycles"] for row in e.rows if row["program_id"] == key[0])
        compute_set = e.programs.get(key[0], {}).get("compute_set_id")
        rows.append((*key, *cost, longest, compute_set))
    return answer("program_id type name num_steps cycles fraction longest_cycles compute_set_id", rows)


def by_compute_set(e: Execution) -> Answer:
    _ = e.captured["programs"]
    names = {row["compute_set_id"]: row["name"] for row in e.captured["compute_sets"]}
    sets = {program: row["compute_set_id"] for program, row in e.programs.items()}
    rows = []
    for (one,), cost in costs(
        e, lambda row: (-1 if sets.get(row["program_id"]) is None else sets[row["program_id"]],)
    ).items():
        if one >= 0:
            programs = {row["program_id"] for row in e.rows if sets.get(row["program_id"]) == one}
            rows.append((one, names[one], len(programs), *cost))
    return answer("compute_set_id name num_programs num_steps cycles fraction", rows)


def by_operation(e: Execution) -> Answer:
    contexts = {one["id"]: one for one in (e.captured.contexts or {"contexts": []})["contexts"]}
    strings = e.captured.contexts["stringTable"] if e.captured.contexts else []
    sets = {row["compute_set_id"]: row["debug_context_id"] for row in e.captured.get("compute_sets", [])}

    def operation(row: Row) -> tuple[str, str, str]:
        program = e.programs.get(row["program_id"], {})
        at = program.get("debug_context_id")
        at = sets.get(program.get("compute_set_id")) if at is None else at
        name, location = "", ""
        while at in contexts:  # the outermost that says something is the last to be met
            one = contexts[at]
            name = strings[one["name"]] or name if "name" in one else name
            if "location" in one:
                location = f"{strings[one['location']['fileName']]}:{one['location']['lineNumber']}"
            at = one["parentId"]
        if name:
            return name, location, "debug.cbor"
        path = "/".join(row["name"].split("/")[:-1])
        return path or row["name"], "", "name"

    kinds = ("compute", "exchange", "inter-IPU", "host", "sync", "other")
    rows = []
    for key, cost in costs(e, operation).items():
        mine = [row for row in e.rows if operation(row) == key]
        rows.append((*key, *cost, *(sum(row["cycles"] for row in mine if row["kind"] == kind) for kind in kinds)))
    return answer(
        "operation location origin num_steps cycles fraction compute exchange inter_ipu host sync other", rows
    )


def by_prefix(e: Execution, depth: int, prefix: str) -> Answer:
    start = [part for part in prefix.split("/") if part]
    rows = []
    for (one,), cost in costs(e, lambda row: ("/".join(row["name"].split("/")[: len(start) + depth]),)).items():
        if one.split("/")[: len(start)] == start:
            programs = {
                row["program_id"] for row in e.rows if "/".join(row["name"].split("/")[: len(start) + depth]) == one
            }
            rows.append((one, len(programs), *cost))
    return answer("prefix num_programs num_steps cycles fraction", rows)


def shares(e: Execution) -> Answer:
    rows = []
    for (run, ipu), mine in e.groups("run_id", "ipu").items():
        total, (first, last) = sum(row["cycles"] for row in mine), e.span(run)
        found = []
        for kind in {row["kind"] for row in mine}:
            those = [row for row in mine if row["kind"] == kind]
            cycles, covered = sum(row["cycles"] for row in those), len(active(those))
            found.append((run, ipu, kind, len(those), cycles, fraction(cycles, total), covered,
                          covered / (last - first) if last > first else None))  # fmt: skip
        rows += sorted(found, key=lambda row: (-row[4], row[2]))
    return answer("run_id ipu kind num_steps cycles fraction covered_cycles covered_fraction", rows)


def overlap(e: Execution) -> Answer:
    rows = []
    for key, mine in e.groups("run_id", "ipu").items():
        compute, copies = (
            active(row for row in mine if row["type"] == kind) for kind in ("OnTileExecute", "StreamCopyMid")
        )
        both = len(compute & copies)
        rows.append((*key, len(compute), len(copies), both, fraction(both, min(len(compute), len(copies)))))
    return answer("run_id ipu compute_cycles io_cycles both_cycles overlap", rows)


def bandwidth(e: Execution) -> Answer:
    def path(row: Row) -> str:
        if row["type"] == "GlobalExchange":
            return "inter-IPU"
        directions = [
            one["direction"] for one in e.captured.get("stream_copies", []) if one["program_id"] == row["program_id"]
        ]
        remote = {"Remote" in one for one in directions}
        return "unknown" if not remote else "mixed" if len(remote) == 2 else "remote" if True in remote else "host"

    rows = []
    for (run, ipu), mine in e.groups("run_id", "ipu").items():
        moving = [row for row in mine if row["type"] in ("StreamCopyMid", "GlobalExchange")]
        for one in sorted({path(row) for row in moving}):
            those = [row for row in moving if path(row) == one]
            moved = [[row[name] for row in those if row[name] is not None] for name in ("data_in", "data_out")]
            sums = [sum(values) if values else None for values in moved]
            cycles = len(active(those))
            rate = sum(map(sum, moved)) / cycles if cycles and (moved[0] or moved[1]) else None
            rows.append((run, ipu, one, len(those), *sums, cycles, rate, None if rate is None else rate * e.clock))
    return answer("run_id ipu path num_steps bytes_in bytes_out covered_cycles bytes_per_cycle bytes_per_second", rows)


def imbalance(e: Execution) -> Answer:
    target = e.captured.target
    tiles = target["tiles_per_ipu"]

    def lost(row: Row) -> float | None:
        if row["cycles_by_tile"] is not None:
            mine = numbers(row["cycles_by_tile"], target["num_tiles"])[row["ipu"] * tiles : (row["ipu"] + 1) * tiles]
            return max(mine) - sum(mine) / tiles
        return row["cycles"] * (1 - row["tile_balance"]) if row["tile_balance"] else None if row["cycles"] else 0

    found = []
    for key, mine in e.groups("program_id", "type", "name").items():
        if mine[0]["kind"] != "sync":
            losses = [lost(row) for row in mine]
            certain = [one for one in losses if one is not None]
            total = float(sum(certain)) if certain else None
            found.append((*key, len(mine), sum(row["cycles"] for row in mine), total, len(losses) - len(certain)))
    everything = sum(row[5] or 0 for row in found)
    found.sort(key=lambda row: (row[5] is None, -(row[5] or 0), row[:3]))
    rows = [(*row[:6], None if row[5] is None else fraction(row[5], row[4]),
             None if row[5] is None else fraction(row[5], everything), row[6]) for row in found]  # fmt: skip
    columns = "program_id type name num_steps cycles lost_cycles lost_fraction share num_unknown"
    return answer(columns, rows)


def flops(e: Execution) -> Answer:
    _ = e.captured["programs"]
    sets = {row["compute_set_id"]: row for row in e.captured["compute_sets"] if row["flops"] is not None}
    if not sets:
        raise Missing("flops")
    target, rows = e.captured.target, []
    peak = FLOPS.get(target["architecture"], 0) * target["num_tiles"]
    for one in sorted(sets, key=lambda one: one):
        mine = [row for row in e.rows if e.programs.get(row["program_id"], {}).get("compute_set_id") == one]
        if mine:
            executions = len({row["step_id"] for row in mine})
            cycles = max(
                sum(row["cycles"] for row in mine if row["ipu"] == ipu) for ipu in {row["ipu"] for row in mine}
            )
            rate = fraction(sets[one]["flops"] * executions, cycles)
            rows.append((one, sets[one]["name"], sets[one]["flops"], executions, cycles, rate,
                         None if rate is None else rate * e.clock,
                         rate / peak if rate is not None and peak else None))  # fmt: skip
    rows.sort(key=lambda row: -row[2] * row[3])
    return answer("compute_set_id name flops executions cycles flops_per_cycle flops_per_second utilisation", rows)


def against_estimates(e: Execution) -> Answer:
    _ = e.captured["programs"]
    target = e.captured.target
    of_set = {row["compute_set_id"]: row["estimated_cycles_by_tile"] for row in e.captured.get("compute_sets", [])}
    estimates = {}
    for program, row in e.programs.items():
        own = numbers(row["estimated_cycles_by_tile"], target["num_tiles"])
        estimates[program] = own if any(own) else numbers(of_set.get(row["compute_set_id"]), target["num_tiles"])
    if not any(map(any, estimates.values())):
        raise Missing("estimates")
    rows = []
    for (program, kind, name, ipu), mine in e.groups("program_id", "type", "name", "ipu").items():
        tiles = target["tiles_per_ipu"]
        estimate = max(estimates.get(program, [0] * target["num_tiles"])[ipu * tiles : (ipu + 1) * tiles])
        if estimate:
            mean = sum(row["cycles"] for row in mine) / len(mine)
            difference = sum(row["cycles"] - estimate for row in mine)
            ratio = mean / estimate
            rows.append(
                (program, kind, name, ipu, len(mine), estimate, mean, ratio, difference, ratio >= 2 or ratio <= 0.5)
            )
    rows.sort(key=lambda row: -abs(row[8]))
    columns = "program_id type name ipu num_steps estimated_cycles measured_cycles ratio difference_cycles far_apart"
    return answer(columns, rows)


# -------------------------------------------------------------------------------------------------------------- waits
def idle_gaps(e: Execution) -> Answer:
    rows = []
    for (run, ipu), mine in e.groups("run_id", "ipu").items():
        idle = set(range(*e.span(run))) - anywhere(row for row in mine if row["type"] != "SyncAns")
        on = [row for row in sorted(mine, key=lambda row: row["step_id"])
              if row["type"] != "SyncAns" and row["all_from_min"] < row["all_to_max"]]  # fmt: skip
        for begin, end in stretches(idle):
            before = [(row["type"], row["name"]) for row in on if row["all_to_max"] == begin]
            after = [(row["type"], row["name"]) for row in on if row["all_from_min"] == end]
            rows.append((run, ipu, begin, end, end - begin, *(before[-1] if before else (None, None)),
                         *(after[0] if after else (None, None))))  # fmt: skip
    columns = "run_id ipu begin end cycles before_type before after_type after"
    return answer(columns, sorted(rows, key=lambda row: (-row[4], row[:3])))


Pipelines = dict[tuple[int, int], dict[int, set[int]]]


def pipelines(e: Execution) -> Pipelines:
    """Return by run and replica the cycles in which each IPU works; those in which nothing does are left out."""
    target = e.captured.target
    found: Pipelines = {}
    for (run, ipu), mine in e.groups("run_id", "ipu").items():
        working = [row for row in mine if row["type"] not in ("SyncAns", "StreamCopyBegin")
                   and not (row["type"] == "Sync" and row["name"] != "Internal Sync")]  # fmt: skip
        replica = ipu // (target["num_ipus"] // target["num_replicas"])
        found.setdefault((run, replica), {})[ipu] = anywhere(working)
    return {key: work for key, work in found.items() if any(work.values())}


def bubbles(e: Execution) -> Answer:
    rows = []
    for key, work in pipelines(e).items():
        anyone = set().union(*work.values())
        span = max(anyone) + 1 - min(anyone)
        for ipu, mine in work.items():
            bubble = len(anyone - mine)
            rows.append((*key, ipu, span, len(mine), bubble, bubble / span, span - len(anyone)))
    return answer("run_id replica ipu span_cycles work_cycles bubble_cycles bubble_fraction stalled_cycles", rows)


def waiting(e: Execution) -> Answer:
    rows = []
    for key, work in pipelines(e).items():
        anyone = set().union(*work.values())
        everywhen = set(range(min(anyone), max(anyone) + 1))
        for ipu, mine in work.items():
            for begin, end in stretches(anyone - mine):
                rows.append(
                    (*key, ipu, begin, end, end - begin, min(other for other in work if end - 1 in work[other]))
                )
            rows += [(*key, ipu, begin, end, end - begin, None) for begin, end in stretches(everywhen - anyone)]
    return answer("run_id replica ipu begin end cycles waited_for", sorted(rows, key=lambda row: (-row[5], row[:4])))


def critical_path(e: Execution) -> Answer:
    """Go back cycle by cycle."""
    rows: list[tuple[Any, ...]] = []
    for key, work in pipelines(e).items():
        anyone = set().union(*work.values())
        first, at = min(anyone), max(anyone) + 1
        ipu = min(one for one in work if at - 1 in work[one])
        labels: dict[int, tuple[int, int | None]] = {}
        leg = 0
        while at > first:
            if at - 1 in work[ipu]:
                at -= 1
                labels[at] = (leg, ipu)
                continue
            begin = at
            while begin > first and begin - 1 not in work[ipu]:
                begin -= 1
            others = {
                cycle: min(one for one in work if cycle in work[one]) for cycle in range(begin, at) if cycle in anyone
            }
            until = max(others, default=begin - 1) + 1
            ipu = others[until - 1] if others else ipu
            for cycle in range(until, at):
                labels[cycle] = (leg + 1, None)
            leg, at = leg + 2, until
        cycles = sorted(labels)
        begins = [cycle for cycle in cycles if cycle == first or labels[cycle] != labels[cycle - 1]]
        for begin, end in zip(begins, [*begins[1:], cycles[-1] + 1], strict=True):
            rows.append((*key, labels[begin][1], begin, end, end - begin))
    return answer("run_id replica ipu begin end cycles", rows)
