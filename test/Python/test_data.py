"""genrec.data: files in every form to histories, splits and Parquet."""

import errno
import gzip
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from genrec import data

ROWS = "2::20::b\n1::10::a\n1::11::é\n2::21::d\n1::12::c\n"


def compress(raw: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(raw)
    if suffix == ".zst":
        return pa.compress(raw, codec="zstd", asbytes=True)
    return raw


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_reads_double_colon_files(tmp_path, suffix, encoding):
    path = tmp_path / f"ratings.dat{suffix}"
    path.write_bytes(compress(ROWS.encode(encoding), suffix))
    frame = data.read(path, columns=["user", "item", "name"], encoding=encoding)
    assert frame["user"].to_list() == [2, 1, 1, 2, 1]  # the file's order
    assert frame["item"].dtype == pl.Int64
    assert frame["name"].to_list() == ["b", "a", "é", "d", "c"]


def test_reads_csv_and_tsv_with_a_header(tmp_path):
    (tmp_path / "a.csv").write_text('user,title\n1,"one, two"\n2,\n')
    (tmp_path / "a.tsv").write_text('user\ttitle\r\n1\ta "quoted\r\n')
    csv = data.read(tmp_path / "a.csv", columns=["title", "user"])
    assert csv.rows() == [("one, two", 1), (None, 2)]
    assert data.read(tmp_path / "a.tsv").rows() == [(1, 'a "quoted')]


def test_one_column_may_hold_other_separators(tmp_path):
    (tmp_path / "titles.csv").write_text("title|year\nAlien|1979\n")
    assert data.read(tmp_path / "titles.csv", separator=",").columns == ["title|year"]
    (tmp_path / "titles.csv").write_text('user,"a;b"\n1,2\n')
    assert data.read(tmp_path / "titles.csv").columns == ["user", "a;b"]


def test_several_zstd_frames_are_one_file(tmp_path):
    path = tmp_path / "x.csv.zst"
    path.write_bytes(compress(b"a\n1\n", ".zst") + compress(b"2\n", ".zst"))
    assert data.read(path)["a"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("x.dat", "a::\xe9\n".encode("latin-1"), {"columns": ["a", "b"]}, "line 1: not utf-8; pass encoding='latin-1'"),
        ("x.dat", b"1::2\n", {}, "the file has no header line; pass columns="),
        ("x.dat", b"1::2\n", {"columns": ["a"]}, "has 2 columns, but 1 names were given"),
        ("x.csv", b"a,b\n1,2\n", {"columns": ["c"]}, "no column 'c'; the file has ['a', 'b']"),
        ("x.csv.zst", b"no zstd", {}, "damaged or truncated zst file"),
        ("x.csv.gz", gzip.compress(b"a\n1\n", mtime=0)[:-6], {}, "damaged or truncated gz file"),
        ("x.csv", b"a,b\n", {}, "no rows"),
        ("x.csv", b"user\titem\n1\t2\n", {}, "pass separator='\\t', or separator=',' if it is one column"),
        ("x.csv", b"user;item\n1;2\n", {}, "has ';' and no ','"),
        ("x.tsv.gz", gzip.compress(b"user,item\n1,2\n", mtime=0), {}, "pass separator=','"),
        ("x.dat", b"1\t2\n", {"columns": ["user", "item"]}, "pass separator='\\t'"),
        ("x.data", b"1::2\n", {"columns": ["user", "item"]}, "pass separator='::'"),
        ("x.csv", b"a,b,c\n1,2,3\n4,5\n6\n", {}, ", line 3: has 2 columns, but the first line has 3; mend or remove"),
        (
            "x.csv",
            b"a,b\n1,2\n3,4,5\n",
            {},
            ", line 3: has 3 columns, but the first line has 2; mend or remove the line; a",
        ),
        ("x.csv", b"a,b,c\n1,2,3,4\n5,6\n", {"columns": ["a"]}, ", line 2: has 4 columns"),
        ("x.csv", b"a,b\n1,2\n\n3,4\n", {}, ", line 3: has 1 column, but the first line has 2"),
        ("x.csv", b'a,b\n"1,2",3\n"4,5"\n', {}, ", line 3: has 1 column, but the first line has 2"),
        ("x.csv", b'a,b\n"1\n2",3\n"4,5"\n', {}, ", line 4: has 1 column, but the first line has 2"),
        ("x.csv", b"a\n1\n2,3\n", {}, ", line 3: has 2 columns, but the first line has 1"),
        ("x.tsv", b"a\tb\n1\t2\n3\n", {}, ", line 3: has 1 column"),
        ("x.dat", b"1::2\n3::4::5\n", {"columns": ["a", "b"]}, ", line 2: has 3 columns"),
        ("x.dat.gz", gzip.compress(b"1::2\n3\n", mtime=0), {"columns": ["a", "b"]}, ", line 2: has 1 column"),
        ("x.csv", b"a,b,a\n1,2,3\n", {}, ", line 1: names the column 'a' twice; give each column a name of its own"),
    ],
)
def test_bad_files_are_named_with_what_is_wrong(tmp_path, name, content, options, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(data.DataError) as error:
        data.read(tmp_path / name, **options)
    assert message in str(error.value)
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b'a,b\n1,"x, ""y"", z"\n2,"line\nbreak"\n', [(1, 'x, "y", z'), (2, "line\nbreak")]),
        (b'a,b\n1,"x, ""y"", z"\n2,w\n', [(1, 'x, "y", z'), (2, "w")]),
        (b"a,b\n1,\n,2\n\n\n", [(1, None), (None, 2)]),
        (b"a,b\r\n1,2\r\n3,4", [(1, 2), (3, 4)]),
        (b"a\n1\n\n2\n", [(1,), (None,), (2,)]),
    ],
    ids=["a field of two lines", "quoted separators", "empty fields", "no last line end", "one column"],
)
def test_lines_of_all_columns_are_read(tmp_path, content, rows):
    (tmp_path / "x.csv").write_bytes(content)
    assert data.read(tmp_path / "x.csv").rows() == rows


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("x.csv", "x.parquet"), ("x.tsv.gz", "x.parquet"), ("a.b.json", "a.b.parquet"), ("x.CSV.ZST", "x.parquet"),
        ("x.parquet.gz", "x.parquet"), ("day.zst", "day.parquet"), ("x.csv.csv", "x.csv.parquet"),
    ],
)  # fmt: skip
def test_parquet_is_not_written_under_the_name_of_another_format(tmp_path, name, instead):
    with pytest.raises(data.DataError) as error:
        data.write(EVENTS, tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path / name}: is written as Parquet, but its name ends in '.")
    assert str(error.value).endswith(f"; call it {instead}") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["out.csv.parquet", "a.json.pq", "b.gz.parquet", "csv", "c.tsv.v2"])
def test_what_is_before_the_ending_is_free(tmp_path, name):
    assert pq.read_table(data.write(EVENTS, tmp_path / name)).num_rows == EVENTS.height


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(data.DataError, match="nowhere.csv: No such file"):
        data.read(tmp_path / "nowhere.csv")


def test_string_ids_become_integers_and_the_mapping_is_kept(tmp_path):
    frame = pl.DataFrame({"item": ["x", "y", None, "x", "z"]})
    encoded, mapping = data.encode_ids(frame, "item")
    assert encoded["item"].to_list() == [0, 1, None, 0, 2]
    mapping.save(tmp_path / "items.json")
    loaded = data.IdMapping.load(tmp_path / "items.json")
    assert loaded.decode(encoded["item"]).to_list() == frame["item"].to_list()
    more, _ = data.encode_ids(pl.DataFrame({"item": ["w", "y"]}), "item", loaded)
    assert more["item"].to_list() == [3, 1]
    with pytest.raises(data.DataError, match="column 'item', row 1: 'q' is not in the mapping"):
        loaded.encode(pl.Series("item", ["x", "q"]))


EVENTS = pl.DataFrame(
    {
        "user": [2, 1, 1, 2, 1, 1, 3, 2],
        "item": [20, 12, 10, 22, 11, 13, 30, 21],
        "time": [5, 7, 1, 9, 1, 8, 1, 5],
    }
)


def test_ties_in_time_keep_the_order_of_the_file():
    grouped = data.group(EVENTS, user="user", order="time", columns=["item"])
    items = {u: [e["item"] for e in h] for u, h in grouped.rows()}
    assert items == {1: [10, 11, 12, 13], 2: [20, 21, 22], 3: [30]}


def test_without_an_order_events_stay_as_in_the_file():
    grouped = data.group(EVENTS, user="user", columns=["item"])
    assert [e["item"] for e in grouped["history"][0]] == [12, 10, 11, 13]


def test_leave_one_out_never_trains_on_the_last_event():
    train, valid = data.leave_one_out(EVENTS, user="user", item="item", order="time", columns=["item"])
    assert train.rows() == [
        (1, [{"item": 10, "next": 11}, {"item": 11, "next": 12}]),
        (2, [{"item": 20, "next": 21}]),
    ]
    assert valid.rows() == [
        (1, [{"item": 10, "next": 11}, {"item": 11, "next": 12}, {"item": 12, "next": 13}], 13),
        (2, [{"item": 20, "next": 21}, {"item": 21, "next": 22}], 22),
    ]


def test_three_parts_hold_out_the_last_two_events():
    train, valid, test = data.leave_one_out(EVENTS, user="user", item="item", order="time", columns=["item"], parts=3)
    assert train.rows() == [(1, [{"item": 10, "next": 11}])]
    assert valid.rows() == [(1, [{"item": 10, "next": 11}, {"item": 11, "next": 12}], 12)]
    assert test.rows() == [(1, [{"item": 10, "next": 11}, {"item": 11, "next": 12}, {"item": 12, "next": 13}], 13)]
    whole = data.leave_one_out(EVENTS, user="user", item="item", order="time", columns=["item"], minimum=4)
    assert test.rows() == whole[1].rows()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": 4}, "parts is 4; 2 are training and evaluation"),
        ({"parts": 3, "minimum": 3}, "minimum is 3; 3 parts need at least 4 events"),
        ({"minimum": 2}, "minimum is 2; 2 parts need at least 3 events"),
    ],
)
def test_parts_that_cannot_be(options, message):
    with pytest.raises(data.DataError, match=message):
        data.leave_one_out(EVENTS, user="user", item="item", **options)


def test_a_null_where_a_value_is_needed_is_named():
    events = EVENTS.with_columns(pl.when(pl.col("time") == 9).then(None).otherwise(pl.col("time")).alias("time"))
    with pytest.raises(data.DataError, match="column 'time', row 3: null"):
        data.group(events, user="user", order="time")


def test_temporal_split_keeps_rows_of_one_time_together():
    early, late = data.temporal_split(EVENTS, time="time", fraction=0.5)
    assert sorted(early["time"]) == [1, 1, 1]
    assert sorted(late["time"]) == [5, 5, 7, 8, 9]
    assert data.temporal_split(EVENTS, time="time", at=9)[1].rows() == [(2, 22, 9)]


def test_writes_lists_of_structs(tmp_path):
    train, _ = data.leave_one_out(EVENTS, user="user", item="item", order="time", columns=["item"])
    path = data.write(train, tmp_path / "new" / "train.parquet")
    field = pq.read_schema(path).field("history").type
    assert pa.types.is_large_list(field) or pa.types.is_list(field)
    assert [f.name for f in field.value_type] == ["item", "next"]
    assert not list(path.parent.glob("*.partial"))


@pytest.mark.parametrize(("fraction", "late"), [(0.9, 9), (0.7, 7), (0.3, 3), (0.1, 1), (0.05, 1)])
def test_temporal_split_takes_the_share_of_the_rows(fraction, late):
    """10 * (1 - 0.9) is a little less than 1."""
    frame = pl.DataFrame({"time": range(10)})
    assert [part.height for part in data.temporal_split(frame, time="time", fraction=fraction)] == [10 - late, late]
    assert [part.height for part in data.temporal_split(frame.clear(), time="time", fraction=fraction)] == [0, 0]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64])
def test_files_that_share_ids_may_have_integers_of_any_width(dtype):
    _, mapping = data.encode_ids(pl.DataFrame({"movie": pl.Series([1, 70_000], dtype=pl.Int32)}), "movie")
    frame, _ = data.encode_ids(pl.DataFrame({"movie": pl.Series([3, 1, None], dtype=dtype)}), "movie", mapping)
    assert frame["movie"].to_list() == [2, 0, None]
    assert mapping.encode(pl.Series("movie", [1], dtype=dtype)).to_list() == [0]


def test_strings_and_integers_share_no_ids():
    mapping = data.IdMapping(["a", "b"])
    frame = pl.DataFrame({"movie": pl.Series([None, 1], dtype=pl.Int16)})
    for encode in (lambda: mapping.encode(frame["movie"]), lambda: data.encode_ids(frame, "movie", mapping)):
        with pytest.raises(data.DataError, match=r"'movie' is of integers \(Int16\), but the mapping is of strings"):
            encode()
    assert len(mapping) == 2
    cast = frame.with_columns(pl.col("movie").cast(pl.String))
    assert data.encode_ids(cast, "movie", mapping)[0]["movie"].to_list() == [None, 2]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder, the working folder, with files that are hard to read."""
    monkeypatch.chdir(tmp_path)
    contents = {
        "empty.csv": b"", "utf16.csv": "a,b\n1,2\n".encode("utf-16"), "open.csv": b'a,b\n1,"x\n2,y\n', "a.json": b"[1]",
        "ids.csv": bytes(range(256)), "a.csv": b"a,b\n1,2\n",
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    data.write(EVENTS, "a.parquet")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: data.read("."), ".: is a folder; read its files one by one"),
        (lambda: data.read("*.csv"), "*.csv: is a pattern, and one file is read"),
        (lambda: data.read("absent.json"), "absent.json: No such file or directory"),
        (lambda: data.read("a.json"), "a.json: is no delimited text; pl.read_json reads it"),
        (lambda: data.read("a.parquet"), "a.parquet: is no delimited text; Parquet is read by pl.read_parquet"),
        (lambda: data.read("empty.csv"), "empty.csv: no rows"),
        (lambda: data.read("utf16.csv"), "utf16.csv: not utf-8; pass encoding='utf-16'"),
        (lambda: data.read("open.csv"), 'open.csv: a field begins with " and does not end with one'),
        (lambda: data.read("a.csv", columns="ab"), "columns takes a list, ['ab'], got the text 'ab'"),
        (lambda: data.read("a.csv", null_values="NA"), "null_values takes a list, ['NA'], got the text 'NA'"),
        (lambda: data.group(EVENTS.lazy(), user="user"), "got LazyFrame; collect it first"),
        (lambda: data.group(EVENTS.to_arrow(), user="user"), "got Table; convert it: pl.from_arrow(table)"),
        (lambda: data.write({"a": [1]}, "b.parquet"), "a Polars frame is needed, got dict; make one"),
        (lambda: data.encode_ids("a.csv", "item"), "got str; make one: pl.DataFrame({...}), or data.read(path)"),
        (lambda: data.group(EVENTS, user="user", columns="item"), "columns takes a list, ['item']"),
        (lambda: data.group(EVENTS, user="user", columns=[]), "events need a column beside 'user'"),
        (lambda: data.group(EVENTS, user=["user"]), "columns are named one by one, by a text, got ['user']"),
        (lambda: data.group(EVENTS, user="user", name="user"), "cannot both be called 'user'; name= gives"),
        (lambda: data.leave_one_out(EVENTS, user="user", item="item", name="user"), "cannot both be called 'user'"),
        (lambda: data.temporal_split(EVENTS, time="time", fraction="0.1"), "fraction is '0.1'; it must be a number"),
        (lambda: data.temporal_split(EVENTS, time="time", at="2020-01-01"), "column 'time' is Int64, and at is '2020"),
        (lambda: data.encode_ids(EVENTS, ["item"]), "one column is encoded, named by a text, got list"),
        (lambda: data.encode_ids(EVENTS, "item", {}), "mapping takes an IdMapping, got dict; IdMapping.load(path)"),
        (lambda: data.encode_ids(pl.DataFrame({"x": [[1]]}), "x"), "column 'x' is of lists or structs (List(Int64))"),
        (lambda: data.IdMapping("abc"), "a mapping is made of a list of values, got the text 'abc'"),
        (lambda: data.IdMapping(["a"]).encode(["a"]), "a Polars series is needed, such as frame['item'], got list"),
        (lambda: data.IdMapping(["a"]).decode(pl.Series("x", [0, None, 5])), "row 2: the mapping has no id 5"),
        (lambda: data.IdMapping(["a"]).decode(pl.Series("x", [-1])), "column 'x', row 0: the mapping has no id -1"),
        (lambda: data.IdMapping.load("ids.csv"), "ids.csv: not an id mapping, which IdMapping.save writes"),
        (lambda: data.IdMapping.load("absent"), "absent: No such file or directory"),
        (lambda: data.IdMapping(["a"]).save("folder"), "folder: Is a directory"),
        (lambda: data.IdMapping(["a"]).save("a.csv/ids.json"), "a.csv/ids.json: a.csv is a file, or lies in one"),
        (lambda: data.write(EVENTS, "a.csv/b.parquet"), "a.csv/b.parquet: a.csv is a file, or lies in one"),
        (lambda: data.write(EVENTS, ""), "write takes the path of a file, got an empty one"),
        (lambda: data.write(EVENTS, "b.parquet", row_group=0), "row_group is 0; a row group has at least 1 row"),
        (lambda: data.write(EVENTS, "/dev/full/b.parquet"), "/dev/full is a file, or lies in one"),
    ],
)  # fmt: skip
def test_mistakes_of_a_first_hour(make, told, files):
    before = sorted(files.iterdir())
    with pytest.raises(data.DataError) as raised:
        make()
    assert told in str(raised.value)
    assert sorted(files.iterdir()) == before


def test_a_full_disk_is_told(files, monkeypatch):
    def write_text(self, *_, **__):
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    data.IdMapping(["kept"]).save("ids.json")
    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(data.DataError, match="ids.json: No space left on device; free some space, or write to another"):
        data.IdMapping(["new"]).save("ids.json")
    assert data.IdMapping.load("ids.json").value_of(0) == "kept" and not list(files.glob("*.partial"))


@pytest.mark.parametrize(("name", "told"), [("read_csv", "data.read"), ("split", "leave_one_out"), ("wrte", "'write'")])
def test_names_that_there_are_not(name, told):
    with pytest.raises(AttributeError, match=f"module 'genrec.data' has no attribute '{name}'; .*{told}"):
        getattr(data, name)
