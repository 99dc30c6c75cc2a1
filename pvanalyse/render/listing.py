"""The reports below a path, for people and programs."""

from __future__ import annotations

from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, Value
from pvanalyse.report_files import Remains, ReportFile, ReportFiles, Survey

_FILE_FIELDS = [
    Field("File", "name"),
    Field("Size", "bytes", Unit.BYTES),
    Field("What", "kind"),
    Field("Note", "note", prose=True),
]
_CSV_FIELDS = [
    Field("Report", "directory"),
    Field("Engine", "engine"),
    Field("Cluster", "cluster"),
    Field("Debug info", "debug_info"),
    Field("File", "file"),
    Field("Kind", "kind"),
    Field("Size", "bytes", Unit.BYTES),
    Field("Note", "note"),
]


def survey_document(survey: Survey) -> Document:
    """Return what lies at and below a path as a document."""
    sections = [*map(_report, survey.reports), *map(_remains, survey.remains)]
    skipped = [f"{one.directory}: {one.problem}" for one in survey.skipped]
    sections.append(Section("Could not be looked into", sentences=skipped))
    count = len(survey.reports)
    rows: list[tuple[Value, ...]] = [
        (str(r.directory), r.engine, r.cluster, _debug_info(r), f.name, f.kind.value, f.bytes, f.note)
        for r in survey.reports
        for f in (*r.files, *r.leftovers)
    ]
    rows += [
        (str(r.directory), "", "", "", f.name, f.kind.value, f.bytes, f.note) for r in survey.remains for f in r.files
    ]
    return Document(
        title=f"{survey.path}: {count or 'no'} report{'' if count == 1 else 's'}",
        sections=sections,
        data={
            "path": str(survey.path),
            "reports": [_report_data(report) for report in survey.reports],
            "remains": [_remains_data(remains) for remains in survey.remains],
            "skipped": [{"directory": str(one.directory), "problem": one.problem} for one in survey.skipped],
        },
        grid=Grid("", _CSV_FIELDS, rows),
    )


def _report(report: ReportFiles) -> Section:
    facts = [
        Fact("Engine", report.engine),
        Fact("TensorFlow cluster", report.cluster),
        Fact("Made", report.created.isoformat(" ") if report.created else ""),
        Fact("Process", report.process_id),
        Fact("Debug info", str(report.debug_info) if report.debug_info_origin == "parent" else ""),
    ]
    rows = [(file.name, file.bytes, file.kind.value, file.note) for file in (*report.files, *report.leftovers)]
    kept = [fact for fact in facts if fact.value not in ("", None)]
    return Section(str(report.directory), kept, [Grid("", _FILE_FIELDS, rows)], report.notes)


def _remains(remains: Remains) -> Section:
    rows = [(file.name, file.bytes, file.kind.value, "") for file in remains.files]
    return Section(f"{remains.directory} (no report)", grids=[Grid("", _FILE_FIELDS, rows)], sentences=remains.notes)


def _debug_info(report: ReportFiles) -> str:
    if report.debug_info is None:
        return ""
    own = report.debug_info_origin == "own"
    return str(report.debug_info) if own else f"{report.debug_info} ({report.debug_info_origin})"


def _report_data(report: ReportFiles) -> dict[str, object]:
    return {
        "directory": str(report.directory),
        "engine": report.engine,
        "cluster": report.cluster,
        "created": report.created.isoformat() if report.created else None,
        "process_id": report.process_id,
        "debug_info": str(report.debug_info) if report.debug_info else None,
        "debug_info_origin": report.debug_info_origin,
        "files": [_file_data(file) for file in report.files],
        "leftovers": [_file_data(file) for file in report.leftovers],
        "notes": list(report.notes),
    }


def _remains_data(remains: Remains) -> dict[str, object]:
    files = [_file_data(file) for file in remains.files]
    return {"directory": str(remains.directory), "files": files, "notes": list(remains.notes)}


def _file_data(file: ReportFile) -> dict[str, object]:
    return {"name": file.name, "kind": file.kind.value, "bytes": file.bytes, "note": file.note}
