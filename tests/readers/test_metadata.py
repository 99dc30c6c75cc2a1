"""framework.json and app.json: what is read, how it is flattened, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import tables
from pvanalyse.errors import UnreadableFile
from pvanalyse.readers import metadata
from pvanalyse.readers.metadata import read_metadata, read_metadata_json

TENSORFLOW = {
    "TensorFlow": {
        "Version": "v2.6.3-71-gf91ad7f64a0 2.6.3",
        "Githash": "f91ad7f64a0",
        "Cluster": "cluster_9263471812",
        "IpuSelectionOrder": "AUTO",
    },
    "System Information": {
        "Operating system": "Linux",
        "Nominal CPU frequency [GHz]": 2.25,
        "Number of total cpus": 240,
    },
}


def written(directory: Path, content: str | bytes, name: str = "framework.json") -> Path:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(path: Path) -> list[tuple[str, str, str]]:
    table = read_metadata(path)
    return list(zip(*(table[name].to_pylist() for name in ("section", "key", "value")), strict=True))


def problem(path: Path) -> str:
    with pytest.raises(UnreadableFile) as caught:
        read_metadata(path)
    with pytest.raises(UnreadableFile) as again:
        read_metadata_json(path)
    assert str(caught.value) == str(again.value) == f"{path}: {caught.value.problem}"
    assert "\n" not in caught.value.problem
    return caught.value.problem


def test_a_tensorflow_framework_file(tmp_path: Path) -> None:
    # GIVEN what TensorFlow writes
    path = written(tmp_path, json.dumps(TENSORFLOW, indent=2))
    # WHEN it is read, THEN its objects are sections, in the order of the file
    assert rows(path) == [
        ("TensorFlow", "Version", "v2.6.3-71-gf91ad7f64a0 2.6.3"),
        ("TensorFlow", "Githash", "f91ad7f64a0"),
        ("TensorFlow", "Cluster", "cluster_9263471812"),
        ("TensorFlow", "IpuSelectionOrder", "AUTO"),
        ("System Information", "Operating system", "Linux"),
        ("System Information", "Nominal CPU frequency [GHz]", "2.25"),
        ("System Information", "Number of total cpus", "240"),
    ]
    assert read_metadata_json(path) == TENSORFLOW


def test_the_shapes_that_people_write(tmp_path: Path) -> None:
    # GIVEN scalars at the top, deep nesting, arrays, and empty things
    path = written(
        tmp_path,
        """{"model": "BERT", "batch": 16, "lr": 1.10, "tiny": 1e-400, "big": 123456789012345678901234567890,
            "nan": NaN, "inf": -Infinity, "fp16": true, "seed": null, "empty": {}, "none": [], "": "no name",
            "opt": {"name": "lamb", "betas": [0.90, 0.999, {"x": [1, "é\\n", null, false]}],
                    "schedule": {"warm-up": {"steps": 10}, "kind": {}, "a.b": 1}}}""",
        "app.json",
    )
    # WHEN it is flattened, THEN numbers keep their spelling and nothing is lost
    assert rows(path) == [
        ("", "model", "BERT"),
        ("", "batch", "16"),
        ("", "lr", "1.10"),
        ("", "tiny", "1e-400"),
        ("", "big", "123456789012345678901234567890"),
        ("", "nan", "NaN"),
        ("", "inf", "-Infinity"),
        ("", "fp16", "true"),
        ("", "seed", "null"),
        ("", "empty", "{}"),
        ("", "none", "[]"),
        ("", "", "no name"),
        ("opt", "name", "lamb"),
        ("opt", "betas", '[0.90,0.999,{"x":[1,"é\\n",null,false]}]'),
        ("opt", "schedule.warm-up.steps", "10"),
        ("opt", "schedule.kind", "{}"),
        ("opt", "schedule.a.b", "1"),
    ]


@pytest.mark.parametrize("name", ["framework", "app"])
def test_the_columns_are_those_of_the_data_model(tmp_path: Path, name: str) -> None:
    for content in ('{"a": {"b": 1}}', "{}"):
        table = read_metadata(written(tmp_path, content))
        assert table.schema.equals(tables.table(name).arrow_schema())
        table.validate(full=True)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=5), st.booleans(), st.booleans())
def test_any_object_comes_back(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, object], mark: bool, ascii_only: bool
) -> None:
    # GIVEN any JSON object, with or without a byte order mark, with or without escapes
    text = json.dumps(content, ensure_ascii=ascii_only)
    path = written(tmp_path_factory.mktemp("any"), text.encode("utf-8-sig" if mark else "utf-8"))
    # WHEN it is read, THEN it is what the standard library makes of it
    assert read_metadata_json(path) == content
    # AND every leaf that is no string is JSON text of the same value
    leaves = dict(flattened(content))
    table = {(section, key): value for section, key, value in rows(path)}
    assert table.keys() == leaves.keys()
    for place, value in leaves.items():
        assert table[place] == value if isinstance(value, str) else json.loads(table[place]) == value


def flattened(content: dict[str, object]) -> list[tuple[tuple[str, str], object]]:
    """Flatten by paths, the slow way."""
    paths: list[tuple[tuple[str, ...], object]] = [((name,), value) for name, value in content.items()]
    done = False
    while not done:
        done = True
        longer: list[tuple[tuple[str, ...], object]] = []
        for path, value in paths:
            if isinstance(value, dict) and value:
                done = False
                longer += [((*path, name), inner) for name, inner in value.items()]
            else:
                longer.append((path, value))
        paths = longer
    return [((path[0], ".".join(path[1:])) if path[1:] else ("", path[0]), value) for path, value in paths]


def test_the_last_of_equal_names_counts(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": {"x": 1}, "b": 2, "a": {"y": 3, "y": 4}}')
    assert rows(path) == [("a", "y", "4"), ("", "b", "2")]
    assert read_metadata_json(path) == {"a": {"y": 4}, "b": 2}


def test_half_a_surrogate_pair_becomes_the_replacement_character(tmp_path: Path) -> None:
    # GIVEN escapes that are no characters, and a whole pair, which is one
    path = written(tmp_path, r'{"k\udc80": ["\ud83d", "\ud83d\ude00"], "v": "a\ud800"}')
    # WHEN it is read, THEN it can be written as UTF-8
    assert rows(path) == [("", "k\ufffd", '["\ufffd","\U0001f600"]'), ("", "v", "a\ufffd")]
    json.dumps(read_metadata_json(path), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1,\n "b" 2}', "is not JSON at line 2, column 6: expecting ':' delimiter"),
        (b'\xef\xbb\xbf{"a": }', "is not JSON at line 1, column 7: expecting value"),
        (b'{"a": 1} {"b": 2}', "is not JSON at line 1, column 10: extra data"),
        (b'{"a": "x', "is not JSON at line 1, column 7: unterminated string starting at"),
        (b"   \n", "is not JSON at line 2, column 1: expecting value"),
        (b"\x00\x00", "is not JSON at line 1, column 1: expecting value"),
        (b"[1, 2]", "holds an array where a JSON object is expected"),
        (b'"text"', "holds a string where a JSON object is expected"),
        (b"-1.5", "holds a number where a JSON object is expected"),
        (b"NaN", "holds a number where a JSON object is expected"),
        (b"null", "holds null where a JSON object is expected"),
        (b"true", "holds true where a JSON object is expected"),
        (b'{"a": "\xe9"}', "is not UTF-8 text: byte 0xe9 at offset 7"),
        (b'\xef\xbb\xbf{"a": "\xe9"}', "is not UTF-8 text: byte 0xe9 at offset 10"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8 text: byte 0xff at offset 0"),
        (b'{"a": "\xed\xa0\x80"}', "is not UTF-8 text: byte 0xed at offset 7"),
        (b"", "the file is empty"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    assert problem(written(tmp_path, content)) == expected


@pytest.mark.parametrize("depth", [101, 5_000, 1_000_000])
@pytest.mark.parametrize(("before", "after"), [('{"a":', "}"), ("[", "]")])
def test_deep_nesting_is_refused(tmp_path: Path, depth: int, before: str, after: str) -> None:
    content = '{"top":' + before * (depth - 1) + "1" + after * (depth - 1) + "}"
    assert problem(written(tmp_path, content)) == "is nested more than 100 levels deep"


def test_nesting_up_to_the_limit_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a":' * metadata.MAX_DEPTH + "1" + "}" * metadata.MAX_DEPTH)
    assert rows(path) == [("a", ".".join("a" * 99), "1")]


def test_an_integer_of_very_many_digits(tmp_path: Path) -> None:
    # GIVEN more digits than the interpreter converts
    digits = "9" * 10_000
    path = written(tmp_path, f'{{"a": {digits}}}')
    # WHEN it is read as a table, THEN the text is kept; as an object it is refused in words
    assert rows(path) == [("", "a", digits)]
    with pytest.raises(UnreadableFile, match="holds an integer of too many digits"):
        read_metadata_json(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    # GIVEN a file of a terabyte that takes no space
    path = tmp_path / "app.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert problem(path) == "is larger than the 64.0 MiB that a file of its kind may have"


def test_the_limit_itself_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, '{"a": 1}')
    monkeypatch.setattr(metadata, "MAX_BYTES", 8)
    assert rows(path) == [("", "a", "1")]
    monkeypatch.setattr(metadata, "MAX_BYTES", 7)
    assert problem(path) == "is larger than the 7 B that a file of its kind may have"


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing", tmp_path / "dangling", tmp_path / "loop"):
        assert problem(path)
    assert problem(Path("/dev/null"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = written(tmp_path, "{}")
    path.chmod(0)
    assert "permission" in problem(path)


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    # GIVEN a name that is not UTF-8, WHEN the file is damaged, THEN the error still names it
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    path.write_text("{")
    with pytest.raises(UnreadableFile) as caught:
        read_metadata(path)
    assert caught.value.path == os.fspath(path)


def test_str_paths_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": "b"}')
    assert read_metadata(os.fspath(path)).to_pylist() == [{"section": "", "key": "a", "value": "b"}]
    assert read_metadata_json(os.fspath(path)) == {"a": "b"}


def test_deep_input_does_not_end_the_process(tmp_path: Path) -> None:
    # GIVEN ten million brackets, WHEN a fresh interpreter reads them, THEN it ends in an orderly way
    path = written(tmp_path, "[" * 10_000_000)
    program = (
        "import sys\n"
        "from pvanalyse.errors import UnreadableFile\n"
        "from pvanalyse.readers.metadata import read_metadata\n"
        "try: read_metadata(sys.argv[1])\n"
        "except UnreadableFile as error: print(error.problem)"
    )
    root = Path(metadata.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=120, cwd=root, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "is nested more than 100 levels deep\n", "")
