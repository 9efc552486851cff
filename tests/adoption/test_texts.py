"""Texts of an old server in its own code page, and the order in which objects are created."""

import pytest

from ringlog.adoption.conversion.order import ordered
from ringlog.adoption.conversion.tables import table_scripts
from ringlog.adoption.errors import AdoptionError
from ringlog.adoption.server import ase
from ringlog.adoption.server.dynamic import names_in_dynamic_sql
from ringlog.adoption.server.names import quoted
from ringlog.adoption.server.objects import Check, Module, Old, OldColumn, OldIndex, OldTable, Reference
from ringlog.adoption.server.texts import Unreadable, codec, doubts, reading


def column(name: str, kind: str, length: int = 4, code_page: str = "") -> OldColumn:
    return OldColumn(name, kind, length, 0, 0, True, code_page=code_page)


@pytest.mark.parametrize(
    ("charset", "value", "text"),
    [
        # the code charts of each: ü, and two characters of Japan's
        ("cp850", b"\x81", "ü"),
        ("roman8", b"\xcf", "ü"),
        ("cp1252", b"\x80\xfc", "€ü"),
        ("iso_1", b"\xfc", "ü"),
        ("eucjis", b"\xc6\xfc\xcb\xdc", "日本"),
        ("sjis", b"\x93\xfa\x96\x7b", "日本"),
        ("850", b"\x81", "ü"),
        # as clients of that character set receive them from the gateway: Windows' dashes, and NEC's circled
        # one
        ("sjis", b"\x81\x60\x81\x7c\x87\x40", "\uff5e\uff0d①"),
        ("eucjis", b"\xa1\xc1\xa1\xdd", "\uff5e\uff0d"),
        ("iso_1", b"\x81", "\x81"),
    ],
)
def test_a_text_is_read_in_the_server_s_own_code_page(charset: str, value: bytes, text: str) -> None:
    of = reading(column("name", "varchar", 20), charset, True)
    assert of.expression == "convert(varbinary(20), name)"
    assert of.value(value) == text
    assert of.value(None) is None


@pytest.mark.parametrize(
    ("charset", "value"), [("sjis", b"\x93"), ("cp1252", b"\x81"), ("eucjis", b"a\xff"), ("iso_1", b"a\0b")]
)
def test_a_text_that_cannot_be_read_is_reported(charset: str, value: bytes) -> None:
    with pytest.raises(Unreadable):
        reading(column("name", "char", 4), charset, True).value(value)


def test_a_column_s_own_code_page_and_types_without_one() -> None:
    assert reading(column("a", "varchar", -1, "932"), "", False).codec == "sjis"
    assert reading(column("a", "varchar", -1, "932"), "", False).expression == "convert(varbinary(max), a)"
    for unicode in (column("a", "nvarchar", 8), column("a", "varchar", 8, "65001"), column("a", "int")):
        assert reading(unicode, "", False).expression == "a"
    assert reading(column("a", "int"), "sjis", True).codec is None
    with pytest.raises(AdoptionError, match="ebcdic99"):
        codec("ebcdic99")


def test_a_server_that_does_not_report_its_character_set() -> None:
    def of(*columns: OldColumn, charset: str = "") -> Old:
        table = OldTable("t", columns, (), 0)
        return Old("old", True, (table,), (), (), (), charset=charset)

    assert "does not report its character set" in doubts(of(column("a", "varchar")), "")[0]
    assert doubts(of(column("a", "varchar")), "sjis") == []
    assert "type text" in doubts(of(column("a", "text"), charset="roman8"), "")[0]
    assert doubts(of(column("a", "text"), charset="utf8"), "") == []


def test_names_that_are_words_of_the_language() -> None:
    assert [quoted(name) for name in ("loss", "Order", "Order Details", "a]b", "key")] == [
        "loss",
        "[Order]",
        "[Order Details]",
        "[a]]b]",
        "[key]",
    ]


def test_objects_follow_those_that_they_name() -> None:
    modules = [
        Module("view", "all totals", "create view [all totals] as select * from [Sub Totals]"),
        Module("view", "Sub Totals", 'create view "sub totals" as select dbo.half(price) p from t'),
        Module("function", "half", "create function half(@a money) returns money as begin return @a / 2 end"),
        Module("view", "alone", "create view alone as select 1 a -- not like [all totals]"),
    ]
    assert [module.name for module in ordered(modules)] == ["half", "Sub Totals", "all totals", "alone"]
    circle = [Module("procedure", "a", "exec b"), Module("procedure", "b", "exec a")]
    assert [module.name for module in ordered(circle)] == ["b", "a"]


def test_tables_of_ase() -> None:
    """Texts of defaults, rules and checks from syscomments (SAP ASE, Reference Manual: Tables)."""
    rows = {
        "columns": [
            ("dbo", "titles", "id", "varchar", 6, None, None, 0, None, None, 0, None),
            ("dbo", "titles", "price", "moneyn", 8, None, None, 8, None, None, 0, None),
            ("dbo", "titles", "no", "numericn", 5, 6, 0, 0, None, None, 128, None),
        ],
        "defaults": [("dbo", "titles", "price", "create default free as "), ("dbo", "titles", "price", "$0")],
        "rules": [("dbo", "titles", "id", "idrule", "create rule idrule as @id like 'BU%' or @id = '@id'")],
        "checks": [("dbo", "titles", "positive", "CONSTRAINT positive CHECK (price >= 0)")],
        "references": [("dbo", "titles", "fk", "fred", "prices", "price", "amount", *[None] * 14)],
    }
    parts = ase.table_parts(lambda name: rows.get(name, []))  # type: ignore[arg-type, return-value]
    table_name = ("dbo", "titles")
    identifier, price, number = parts.columns[table_name]
    assert (price.type, price.default, price.nullable) == ("money", "$0", True)
    assert (number.declared, number.identity) == ("numeric(6, 0)", (1, 1))
    assert identifier.declared == "varchar(6)"
    assert parts.checks[table_name] == [
        Check("positive", "price >= 0"),
        Check("idrule_id", "id like 'BU%' or id = '@id'"),
    ]
    assert parts.references[table_name] == [Reference("fk", ("price",), "prices", ("amount",), owner="fred")]


def test_refused_parts_of_a_table_are_left_out_and_reported() -> None:
    table = OldTable(
        "t",
        (column("a", "int"), OldColumn("b", "int", 4, 0, 0, True, default="next value for s")),
        (),
        0,
        (Check("odd", "a % 2 = 1"), Check("xml", "a for xml auto")),
        (Reference("fk", ("a",), "gone", ("a",)),),
    )
    (result,) = table_scripts([table], False)
    assert "constraint odd check (a % 2 = 1)" in result.text
    assert "next value" not in result.text
    assert [line.partition(":")[0] for line in result.lost] == ["table t, column b", "table t", "table t"]
    long = OldTable("v", (column("a", "int"),), (), 0, indexes=(OldIndex(60 * "long", ("a",)),))
    assert table_scripts([long], False)[0].indexes == ["create index i_1 on v (a)"]
    # a name that is too long is omitted, but not its object
    named = OldTable(
        "w",
        (column("a", "int"),),
        (),
        0,
        (Check(130 * "c", "a > 0"),),
        (Reference(130 * "f", ("a",), "w", ("a",)),),
    )
    (whole,) = table_scripts([named], False)
    assert whole.text.endswith("    check (a > 0)\n)")
    assert whole.references == ["alter table w add foreign key (a) references w (a)"]
    assert whole.lost == []
    twice = OldColumn("b", "int", 4, 0, 0, True, computed="a * 2")
    versioned = OldTable("t", (column("a", "int"), column("v", "timestamp", 8), twice), (), 0)
    (without,) = table_scripts([versioned], False)
    assert without.text == "create table t (\n    a int null,\n    b as a * 2\n)"
    assert without.lost == [
        "table t, column v: timestamp: versions are not copied; add the column when the rows are there"
    ]
    coarse = OldTable("t", (OldColumn("a", "datetimeoffset", 8, 26, 0, True),), (), 0)
    (fine,) = table_scripts([coarse], False)
    assert fine.text == "create table t (\n    a datetimeoffset(7) null\n)"
    assert fine.lost == [
        "table t, column a: datetimeoffset(0) is datetimeoffset(7) here: later values are not rounded"
    ]
    shape = OldTable("u", (column("where_it_is", "geography", 16),), (), 0)
    assert table_scripts([shape], False)[0].refused.startswith("column where_it_is is geography")


def test_dynamic_sql_is_found_with_its_lines_and_names() -> None:
    names = {"ops": {"t": "ops_t", "u": "u"}, "dbo": {"t": "t"}}
    text = """create proc p @t varchar(30), @r int output as
declare @s nvarchar(100) -- exec (@s)
select @s = 'insert ops.t
 select * from site.ops.u, dbo.t' + @t
exec (@s)
exec @r = q
exec sp_executesql @s, N'@a int', 1
execute @t 1"""
    fixed = Module("procedure", "q", "create proc q as exec p 'exec (@s) ops.t'")
    in_quotes = Module("procedure", "r", 'create proc r as exec ("select * from ops.t")')
    of_ase = [*names_in_dynamic_sql([Module("procedure", "p", text), fixed, in_quotes], names, "site", True)]
    assert of_ase == [
        "procedure p runs SQL that it composes (lines 5, 7, 8): names in it are not changed; "
        "change there ops.t to ops_t (line 3), site.ops.u to u (line 4)",
        "procedure r runs SQL that it composes (line 1): names in it are not changed; "
        "change there ops.t to ops_t (line 1)",
    ]
    assert [*names_in_dynamic_sql([in_quotes], names, "site", False)] == [
        "procedure r runs SQL that it composes (line 1): names in it are not changed"
    ]
