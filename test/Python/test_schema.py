"""Schemas by hand and from Parquet files."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import genrec as gr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from genrec.files import files_of
from model_writing import record_with

HISTORY = pa.list_(
    pa.struct([("movie", pa.int64()), ("time", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.int64()))])
)
TABLE = pa.schema(
    [
        ("user", pa.uint32()),
        ("name", pa.dictionary(pa.int32(), pa.string())),
        ("score", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("interest", pa.large_list(pa.int16())),
        ("history", HISTORY),
    ]
)


def write(path, schema):
    pq.write_table(pa.Table.from_pylist([], schema=schema), path)
    return path


def test_nested_lists_become_domains(tmp_path):
    schema = gr.Schema.from_parquet(write(tmp_path / "t.parquet", TABLE), root="user_row", nullable=["score"])
    assert str(schema) == (
        "user_row\n"
        "  user: int64\n"
        "  name: string\n"
        "  score: float64, nullable\n"
        "  flag: bool\n"
        "  day: time\n"
        "  interest\n"
        "    value: int32\n"
        "  history\n"
        "    movie: int64\n"
        "    time: time\n"
        "    tags\n"
        "      value: int64"
    )
    assert schema.columns[-3:] == ["history.movie", "history.time", "history.tags"]


def test_folders_and_patterns(tmp_path):
    """As --data takes them."""
    small = pa.schema([("user", pa.int64()), ("history", pa.list_(pa.struct([("item", pa.int64())])))])
    for name in (
        "day=1/a.parquet",
        "day=1/b.parquet",
        "day=2/deep/c.PARQUET",
        "day=2/_hidden/d.parquet",
        "x,y.parquet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / name, small if "hidden" not in name else TABLE)
    (tmp_path / "day=2" / "notes.txt").write_text("no Parquet")
    (tmp_path / "day=2" / "around").symlink_to(tmp_path / "day=2")
    expected = ["user", "history.item"]
    patterns = ("day=*", "day=1/?.parquet", "**/*.parquet", "**/day=1/**/a.*", "**", "day=1/**")
    for path in ("", *patterns, "x,y.parquet", "day=1/a.parquet,{0}/day=2"):
        assert gr.Schema.from_parquet(f"{tmp_path}/{path.format(tmp_path)}").columns == expected
    assert gr.Schema.from_parquet(tmp_path / "day=2").columns == expected
    found = [os.path.relpath(file, tmp_path) for file in files_of(tmp_path / "**/*.[pP]*")]
    assert found == ["day=1/a.parquet", "day=1/b.parquet", "day=2/deep/c.PARQUET", "x,y.parquet"]
    for path, message in (
        ("none*", "no file matches '.*none\\*'"),
        ("day=2/_hidden/none", "there is no such file"),
        ("empty", "folder '.*empty' holds no Parquet file"),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(gr.DataError, match=message):
            gr.Schema.from_parquet(tmp_path / path)


@contextmanager
def as_nobody(folder):
    """Without root's right to read everything."""
    if os.geteuid() != 0:
        yield
        return
    for above in (folder, *folder.parents):
        if above == Path(tempfile.gettempdir()):
            break
        above.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("mode", "path", "cause"),
    [
        (0o000, "{0}", "folder '{0}/in'"),
        (0o400, "{0}", "folder '{0}/in'"),
        (0o000, "{0}/in", "folder '{0}/in'"),
        (0o000, "{0}/in/deep/a.parquet", "folder '{0}/in'"),
        (0o000, "{0}/out/a.parquet,{0}/in/a.parquet", "folder '{0}/in'"),
        (0o000, "{0}/**/*.parquet", "folder '{0}/in'"),
        (0o000, "{0}/out/link.pq", "folder '{0}/out/link.pq'"),
        (0o000, "{0}/out", "folder '{0}/out/link.pq'"),
        (0o755, "{0}", "{0}/in/a.parquet:"),
        (0o755, "{0}/in/a.parquet", "{0}/in/a.parquet:"),
    ],
)
def test_what_may_not_be_read_is_named(mode, path, cause, tmp_path):
    """In the words of the compiled model (`DatasetFiles.WhatMayNotBeReadIsNamed`)."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "a.parquet", TABLE)
    (tmp_path / "out" / "link.pq").symlink_to(tmp_path / "in" / "a.parquet")
    (tmp_path / "in" / "a.parquet").chmod(0)
    (tmp_path / "in").chmod(mode)
    path = path.format(tmp_path)
    try:
        with as_nobody(tmp_path):
            for read in (gr.Schema.from_parquet, gr.catalogue):
                with pytest.raises(gr.DataError) as error:
                    read(path)
                told = f"{cause.format(tmp_path)} cannot be read: Permission denied; let this user "
                assert str(error.value).startswith(told)
            gr.catalogue(tmp_path / "in" / "later", schema=gr.Schema({"item": gr.int64}))
    finally:
        (tmp_path / "in").chmod(0o755)


def test_files_of_a_folder_agree(tmp_path):
    one = pa.schema([("h", pa.list_(pa.struct([("a", pa.int64())]))), ("user", pa.int64())])
    write(tmp_path / "a.parquet", one)
    write(tmp_path / "b.parquet", pa.schema([("h", pa.list_(pa.struct([("a", pa.int64())])))]))
    with pytest.raises(gr.DataError, match="b.parquet: has no column 'user', which .*a.parquet of the same data has"):
        gr.Schema.from_parquet(tmp_path)
    write(tmp_path / "b.parquet", pa.schema([("h", pa.list_(pa.struct([("a", pa.string())]))), ("user", pa.int64())]))
    with pytest.raises(gr.DataError, match="b.parquet: column 'h.a' has another type than in .*a.parquet"):
        gr.Schema.from_parquet(tmp_path)
    write(tmp_path / "b.parquet", one.append(pa.field("label", pa.float32())))
    with pytest.raises(gr.DataError, match="a.parquet: has no column 'label', which .*b.parquet of the same data has"):
        gr.Schema.from_parquet(tmp_path)


def test_a_catalogue_of_several_files(tmp_path):
    for name in ("a", "b"):
        pq.write_table(pa.table({"item": [1, 2, 3]}), tmp_path / f"{name}.parquet")
    assert gr.catalogue(tmp_path, name="items")._rows == 6


def test_files_are_merged(tmp_path):
    train = write(
        tmp_path / "train.parquet", pa.schema([("h", pa.list_(pa.struct([("a", pa.int64()), ("next", pa.int64())])))])
    )
    valid = write(
        tmp_path / "valid.parquet", pa.schema([("h", pa.list_(pa.struct([("a", pa.int64())]))), ("target", pa.int64())])
    )
    assert gr.Schema.from_parquet(train, valid).columns == ["target", "h.a", "h.next"]
    other = write(tmp_path / "other.parquet", pa.schema([("h", pa.list_(pa.struct([("a", pa.string())])))]))
    with pytest.raises(gr.DataError, match="other.parquet: column 'h.a' has another type than in the files before it"):
        gr.Schema.from_parquet(train, other)


def test_parallel_lists_are_one_domain(tmp_path):
    arrow = pa.schema([("movies", pa.list_(pa.int64())), ("times", pa.list_(pa.int64()))])
    schema = gr.Schema.from_arrow(arrow, parallel={"history": ["movies", "times"]}, padding={"movies": 0})
    history = schema.root.children["history"]
    assert history.column == "movies"
    assert {name: one.column for name, one in history.features.items()} == {"movies": "movies", "times": "times"}
    assert history.features["movies"].type.padding_id == 0
    by_hand = gr.Schema({"history": gr.parallel(movies=gr.int64.padded(0), times=gr.int64)})
    assert by_hand.root.children["history"] == history


def test_fixed_size_lists_of_floats_are_rows_of_values(tmp_path):
    arrow = pa.schema(
        [
            ("image", pa.list_(pa.float32(), 4)),
            ("half", pa.list_(pa.float16(), 3)),
            ("wide", pa.list_(pa.float64(), 2)),
            ("ids", pa.list_(pa.int64(), 2)),
            ("clip", pa.list_(pa.list_(pa.float32(), 4))),
            ("loose", pa.list_(pa.float32())),
        ]
    )
    schema = gr.Schema.from_parquet(write(tmp_path / "t.parquet", arrow), nullable=["image"])
    assert str(schema) == (
        "request\n"
        "  image: float32[4], nullable\n"
        "  half: float32[3]\n"
        "  wide: float64[2]\n"
        "  ids\n"
        "    value: int64\n"
        "  clip\n"
        "    value: float32[4]\n"
        "  loose\n"
        "    value: float32"
    )
    by_hand = gr.Schema({"image": gr.float32.vector(4).nullable(), "clip": [gr.float32.vector(4)]})
    assert by_hand.root.features["image"] == schema.root.features["image"]
    assert by_hand.root.children["clip"] == schema.root.children["clip"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gr.int64.vector(4), r"rows of several values are floats, not int64; \[gr.int64\] is a list"),
        (lambda: gr.float32.vector(0), "the size of a vector must be a whole number of at least 1, got 0"),
        (lambda: gr.float32.vector(True), "the size of a vector must be a whole number of at least 1, got True"),
    ],
)
def test_mistakes_about_rows_of_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_padding_by_the_name_of_the_domain():
    schema = gr.Schema.from_arrow(TABLE, padding={"interest": 0, "history.tags": -1})
    assert schema.root.children["interest"].features["value"].type.padding_id == 0
    assert schema.root.children["history"].children["tags"].features["value"].type.padding_id == -1


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.timestamp("s"), "column 'x' is a timestamp without time zone; write it with one \\(UTC\\), or as seconds"),
        (
            pa.decimal128(5, 2),
            "column 'x' has type decimal128\\(5, 2\\), which no feature can have; cast it when writing",
        ),
        (pa.list_(pa.list_(pa.int64())), "column 'x' is a list of lists; put the inner list into a struct"),
    ],
)
def test_types_that_no_feature_has(kind, message):
    with pytest.raises(gr.DataError, match=message):
        gr.Schema.from_arrow(pa.schema([("x", kind)]))


def test_unknown_names_and_files(tmp_path):
    with pytest.raises(gr.DataError, match="the schema: there is no feature 'histroy.movie'; there are 'user', 'name'"):
        gr.Schema.from_arrow(TABLE, nullable=["histroy.movie"])
    with pytest.raises(gr.DataError, match="missing.parquet: there is no such file"):
        gr.Schema.from_parquet(tmp_path / "missing.parquet")
    (tmp_path / "text.parquet").write_text("no parquet at all")
    with pytest.raises(gr.DataError, match="text.parquet: cannot be read as Parquet"):
        gr.Schema.from_parquet(tmp_path / "text.parquet")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a.b": gr.int64}, "the name of a feature must be a string without dots, got 'a.b'"),
        ({"a": int}, "feature 'a' must be an element type"),
        ({"a": [gr.int64, gr.int64]}, "feature 'a' must be an element type"),
        ({"a": "integer"}, "there is no element type 'integer'; there are bool, int32"),
    ],
)
def test_wrong_fields(fields, message):
    with pytest.raises(ValueError, match=message):
        gr.Schema(fields)


def test_catalogue_finds_its_id(tmp_path):
    path = write(tmp_path / "movies.parquet", pa.schema([("movie", pa.int64()), ("title", pa.string())]))
    assert repr(gr.catalogue(path)) == f"<catalogue 'movies' of {path}>"
    assert list(gr.catalogue(path)) == ["movie", "title"]
    two = write(tmp_path / "two.parquet", pa.schema([("movie", pa.int64()), ("year", pa.int32())]))
    with pytest.raises(
        gr.DataError, match="which column holds the item ids\\? name it: .* integer columns are movie, year"
    ):
        gr.catalogue(two)
    with pytest.raises(gr.DataError, match="the id column 'title' must be an integer column, but it is string"):
        gr.catalogue(path, id="title")


def test_a_column_that_is_null_throughout(tmp_path):
    """It has no type of its own: another file of the data set may have one."""
    history = pa.list_(pa.struct([("a", pa.int64())]))
    null = write(
        tmp_path / "a.parquet", pa.schema([("user", pa.null()), ("tags", pa.list_(pa.null())), ("h", pa.null())])
    )
    typed = pa.schema([("user", pa.int64()), ("tags", pa.list_(pa.int32())), ("h", history)])
    alone = gr.Schema.from_parquet(null)
    assert alone.columns == []
    assert f"  user (left out: column 'user' of {null} is null throughout, without a type of its own)" in str(alone)
    with pytest.raises(
        gr.DataError, match="column 'user' of .*a.parquet is null throughout, .*\n  help: write it with"
    ):
        gr.Schema.from_parquet(null, nullable=["user"])
    write(tmp_path / "b.parquet", typed)
    for paths in ((null, tmp_path / "b.parquet"), (tmp_path / "b.parquet", null), (tmp_path,)):
        assert gr.Schema.from_parquet(*paths).columns == ["user", "tags", "h.a"]
    with pytest.raises(gr.DataError, match="a.parquet: the id column 'user': column 'user' of .* is null throughout"):
        gr.catalogue(null, id="user")


def test_several_columns_of_one_name(tmp_path):
    """They are left out, so that a file is of use without them."""
    both = [pa.field("x", pa.int64()), pa.field("x", pa.float32())]
    twice = tmp_path / "twice.parquet"
    columns = pa.schema([*both, pa.field("y", pa.int64()), pa.field("h", pa.list_(pa.struct(both)))])
    pq.write_table(columns.empty_table(), twice)
    write(tmp_path / "once.parquet", pa.schema([("x", pa.int64()), ("y", pa.int64())]))

    class Reads(gr.Model):
        def forward(self, batch):
            gr.output(x=batch.x)

    for paths in ((twice,), (tmp_path / "once.parquet", twice), (twice, twice)):
        schema = gr.Schema.from_parquet(*paths)
        assert schema.columns == ["y"]
        with pytest.raises(gr.FeatureError, match="'request' has no feature 'x'\n") as caught:
            gr.record(Reads(), schema)
        assert f"{twice} has several columns 'x'; which one is meant cannot be told" in str(caught.value)


def test_a_column_with_a_dot_in_its_name_is_left_out(tmp_path):
    entry = pa.struct([("x.y", pa.float32()), ("item", pa.int64())])
    columns = pa.schema([("user", pa.int64()), ("a.b", pa.int64()), ("history", pa.list_(entry))])
    path = write(tmp_path / "t.parquet", columns)
    schema = gr.Schema.from_parquet(path)
    assert schema.columns == ["user", "history.item"]
    assert "a.b (left out: column 'a.b' of " in str(schema)
    for name, read in (("a.b", lambda batch: batch["a.b"]), ("history.x.y", lambda batch: batch.history["x.y"])):
        with pytest.raises(gr.FeatureError, match=f"column '{name}' of .* has a dot in its name"):
            record_with(lambda batch, read=read: gr.output(x=read(batch)), schema)
    with pytest.raises(gr.DataError, match=r"column 'a\.b' of .* has a dot in its name"):
        gr.Schema.from_parquet(path, nullable=["a.b"])


def test_a_padding_id_is_of_its_type():
    with pytest.raises(ValueError, match="the padding id 2147483648 is no int32"):
        gr.int32.padded(2**31)
    assert gr.int64.padded(2**31).padding_id == 2**31
