"""Objects that are not migrated are reported; those with settings of their own keep them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from case_tables import cases

from ringlog.adoption.assessment import assess
from ringlog.adoption.conversion.object_names import ObjectNames
from ringlog.adoption.conversion.owners import renamed, without_owners
from ringlog.adoption.conversion.rights import rights
from ringlog.adoption.conversion.scripts import Database, write
from ringlog.adoption.conversion.tables import table_scripts
from ringlog.adoption.rings import Rules, sort
from ringlog.adoption.server import ase, left, sql_server
from ringlog.adoption.server.catalogue import _modules
from ringlog.adoption.server.objects import Module, Old, OldColumn, OldIndex, OldKey, OldTable, Reference
from ringlog.adoption.server.texts import doubts, reading


def asking(**answers: list[tuple[Any, ...]]):  # type: ignore[no-untyped-def]
    return lambda name: answers.get(name, [])


def column(name: str, kind: str = "int", length: int = 4, **more: Any) -> OldColumn:
    return OldColumn(name, kind, length, 0, 0, True, **more)


def of(*tables: OldTable, modules: tuple[Module, ...] = (), left_: tuple[str, ...] = ()) -> Old:
    return Old("Microsoft SQL Server", False, tables, modules, (), (), left=left_)


def test_unsupported_kinds_of_sql_server_objects() -> None:
    """Columns and codes of sys.objects, sys.triggers, sys.indexes, sys.tables (System Catalog Views)."""
    notes = [
        *left.of_sql_server(
            asking(
                left_objects=[("SYNONYM", "dbo", "Far"), ("SEQUENCE_OBJECT", "dbo", "numbers")],
                left_triggers=[
                    ("ddl_log", 0, False, "TR"),
                    ("clr", 1, False, "TA"),
                    ("checked", 1, True, "TR"),
                ],
                left_indexes=[
                    ("orders", "once", "NONCLUSTERED", False, True, "U "),
                    ("orders", "old", "NONCLUSTERED", True, False, "U "),
                    ("orders", "doc", "XML", False, False, "U "),
                    ("totals", "by_day", "CLUSTERED", False, False, "V "),
                ],
                left_tables=[("Prices", 2), ("PricesHistory", 1)],
                left_columns=[("people", "phone")],
                left_policies=[("own_rows",)],
                left_types=[("IdList",)],
            )
        )
    ]
    assert notes == [
        "not migrated, of kind synonym: dbo.Far",
        "not migrated, of kind sequence object: dbo.numbers",
        "database trigger ddl_log is not migrated: ringlog has none",
        "trigger clr is not migrated: it belongs to an assembly",
        "trigger checked is disabled there: disable it here too, or drop it",
        "index once of orders ignores repeated rows there (ignore_dup_key): here they are errors",
        "index old of orders is disabled there, and not migrated",
        "index doc of orders is not migrated: it is xml",
        "index by_day of totals, a view, is not migrated: views have no indexes here",
        "table Prices keeps its history there (temporal): here it has the current rows only",
        "columns with masked values: people.phone: copy by a login that may see them (unmask)",
        "policies show a login some rows only: own_rows: copy by a login that sees all",
        "not migrated, types that are tables: IdList",
    ]


def test_constraints_that_are_disabled_and_objects_bound_to_columns() -> None:
    """sys.check_constraints and sys.foreign_keys: is_disabled; sp_bindefault, sp_bindrule (Transact-SQL)."""
    parts = sql_server.table_parts(
        asking(
            columns=[
                ("dbo", "t", "a b", "int", 4, 10, 0, True, "CREATE DEFAULT none AS 7", None, False, None),
                ("dbo", "t", "n", "int", 4, 10, 0, False, None, None, True, None),
            ],
            checks=[("dbo", "t", "on", "([n]>(0))", False), ("dbo", "t", "off", "([n]>(9))", True)],
            rules=[("dbo", "t", "a b", "small", "CREATE RULE small AS @value < 10 or @value = 11")],
            references=[
                ("dbo", "t", "fk_off", "n", "other", "id", "NO_ACTION", "NO_ACTION", "dbo", True),
                ("dbo", "t", "fk", "n", "other", "id", "CASCADE", "NO_ACTION", "sales", False),
            ],
            identities=[("dbo", "t", 5, -1, -40)],
        )
    )
    bound, identity = parts.columns["dbo", "t"]
    assert bound.default == "7"
    assert (identity.identity, identity.last) == ((5, -1), -40)
    assert [(check.name, check.condition) for check in parts.checks["dbo", "t"]] == [
        ("on", "([n]>(0))"),
        ("small_a b", "[a b] < 10 or [a b] = 11"),
    ]
    assert parts.references["dbo", "t"] == [Reference("fk", ("n",), "other", ("id",), "CASCADE", "", "sales")]
    assert parts.left == [
        "check off of t is disabled there, and not migrated: ([n]>(9))",
        "foreign key fk_off of t is disabled there, and not migrated",
    ]


def test_names_that_differ_only_by_owner_or_case() -> None:
    object_names = ObjectNames(
        [
            ("table", "sales", "Customer"),
            ("table", "dbo", "Customer"),
            ("table", "dbo", "CUSTOMER"),
            ("procedure", "sales", "total"),
            ("view", "hist", "Customer"),
            ("table", "dbo", "hist_customer"),
        ]
    )
    assert [object_names.new_name(owner, "Customer") for owner in ("dbo", "sales", "hist")] == [
        "Customer",
        "sales_Customer",
        None,
    ]
    assert object_names.new_name("sales", "total") == "total"
    here = Reference("fk_1", ("c",), "Customer", ("id",), owner="sales")
    gone = Reference("fk_2", ("c",), "Customer", ("id",), owner="hist")
    assert [*object_names.referred("orders", [here, gone])] == [(here, "sales_Customer")]
    assert object_names.reported == [
        "table dbo.CUSTOMER is not migrated: here it would have the same name as Customer, because names "
        "have no owner and do not differ by case",
        "table sales.Customer is sales_Customer here, because names have no owner and dbo has one of this "
        "name: write sales_Customer instead of sales.Customer, and of Customer in texts of the user sales",
        "view hist.Customer is not migrated: here it would have the same name as hist_Customer, because "
        "names have no owner and do not differ by case",
        "foreign key fk_2 of orders is not migrated: it refers to hist.Customer",
    ]
    assert [*object_names.without_owner()] == [
        "2 objects of sales have names without sales here: texts that clients send must not say sales.name"
    ]


@pytest.mark.parametrize(
    ("text", "placed_text", "refused"), cases(__file__, "modules_of_two_owners_with_one_name")
)
def test_modules_of_two_owners_with_one_name(text: str, placed_text: str, refused: str) -> None:
    names = {"ops": {"t": "ops_t", "u": "u"}, "dbo": {"t": "t"}}
    module = renamed(Module("procedure", "t", text, owner="ops"), names, "site")
    assert (module.name, module.text, module.refused) == ("ops_t", placed_text, refused)
    # the same name with another owner denotes another object there too
    other = renamed(Module("procedure", "p", "create proc p as select * from t", owner="dbo"), names, "site")
    assert other.refused == ""


def test_a_head_of_dashes_is_read_once() -> None:
    """If a pattern can match dashes in several ways, a line of them takes unacceptably long."""
    head = "-- ==\n" + 40 * ("-" * 90 + "\n") + "/* ** * */\n"
    names = {"ops": {"p": "ops_p"}, "dbo": {"p": "p"}}
    rows = [("ops", "p", "P ", 1, head + "alter proc p as select 1", True, True)]
    object_names = ObjectNames([("procedure", "dbo", "p"), ("procedure", "ops", "p")])
    (module,) = _modules(rows, object_names, [])
    assert module.text == head + "create proc p as select 1"
    assert renamed(module, names, "site").text == head + "create proc ops_p as select 1"
    assert renamed(Module("procedure", "p", head, owner="ops"), names, "site").text == head


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("create proc [C3G].[up] as exec C3G.up", "create proc [up] as exec up"),
        ("insert GADATA.C3G.L_error exec [gadata].Volvo.[users]", "insert L_error exec [users]"),
        ("select * from other.C3G.L_error, other . C3G.up", None),
        ('print "see C3G.up" exec "C3G"."up"', 'print "see C3G.up" exec "up"'),
        ('select c3g . "L_error".id from C3G.L_error', 'select "L_error".id from L_error'),
        ("select 'C3G.L_error' -- c3g.up\n/* C3G.up */", "select 'C3G.L_error' -- c3g.up\n/* C3G.up */"),
        # an alias, another owner's table, and longer names
        ("select c3g.id from t c3g, Volvo.up, xC3G.up, C3G.L_error2", None),
        ("exec dbo.up", None),
    ],
)
def test_names_lose_the_owner(text: str, without: str | None) -> None:
    names = {"c3g": {"l_error": "L_error", "up": "up"}, "volvo": {"users": "users"}, "dbo": {"up": "up"}}
    assert without_owners(text, names, "gadata") == (without or text)


def test_keys_and_unique_indexes() -> None:
    """Only constraints become constraints: a repeated row is error 2627 for these, 2601 for an index."""
    rows = [
        ("dbo", "t", "PK_t", "a", True, True, False, None, False, False),
        ("dbo", "t", "UQ__t__1234", "b", False, True, False, None, True, True),
        ("dbo", "t", "once", "c", False, True, True, None, False, None),
        ("dbo", "t", "once", "d", False, True, False, None, False, None),
    ]
    keys, constraints, indexes = sql_server.indexes(rows)
    table_name = ("dbo", "t")
    assert keys[table_name] == [("a",), ("b",), ("c", "d")]
    assert constraints[table_name] == [OldKey("PK_t", ("a",), True), OldKey("", ("b",))]
    assert indexes[table_name] == [OldIndex("once", ("c desc", "d"), True)]
    columns = tuple(column(name) for name in "abcd")
    tables = [
        OldTable("t", columns, (), 0, constraints=tuple(constraints[table_name])),
        # its key has the name of a table, and of another key
        OldTable("u", columns, (), 0, constraints=(OldKey("T", ("a",), True), OldKey("pk_T", ("b",)))),
    ]
    first, second = table_scripts(tables, False)
    assert "constraint PK_t primary key (a),\n    unique (b)\n" in first.text
    assert second.text.endswith("    primary key (a),\n    unique (b)\n)")


def test_a_foreign_key_on_a_unique_index_is_made_after_it(tmp_path: Path) -> None:
    columns = (column("a"), column("b"))
    child = OldTable("child", columns, (), 0, references=(Reference("fk", ("a",), "parent", ("b",)),))
    parent = OldTable("parent", columns, (), 0, indexes=(OldIndex("one_b", ("b",), True),))
    old = of(child, parent)
    found = sort([old], Rules(), lambda *_: (None, None))[0]
    write(
        tmp_path,
        [Database("site", old, found, table_scripts(found.site, False), rights(old, found, "site"))],
        "UTC",
    )
    text = (tmp_path / "1_tables.sql").read_text()
    assert text.index("create unique index one_b") < text.index("add constraint fk")


def test_texts_are_parsed_with_the_settings_of_their_creation(tmp_path: Path) -> None:
    """sys.sql_modules.uses_quoted_identifier: 0 where "x" is a text."""
    text = 'create procedure p as select "a text" as said'
    modules = (
        Module("procedure", "p", text, quoted=False),
        Module("procedure", "q", "create proc q as select 1"),
    )
    old = of(modules=modules)
    found = sort([old], Rules(), lambda *_: (None, None))[0]
    judged = assess(old, found, [], rights(old, found, "site"), "site")
    assert all(verdict.compiled for verdict in judged.modules)
    write(tmp_path, [Database("site", old, found, [], rights(old, found, "site"))], "UTC")
    assert (tmp_path / "3_procedures.sql").read_text() == (
        f"set quoted_identifier off\ngo\n{text}\ngo\nset quoted_identifier on\ngo\n"
        "create proc q as select 1\ngo\n"
    )


def test_descriptions_and_collations(tmp_path: Path) -> None:
    """sys.extended_properties: MS_Description; collations as Windows Collation Name has them."""
    notes: list[str] = []
    rows = [
        ("dbo", "t", None, "MS_Description", "what's in it"),
        ("dbo", "t", "a", "MS_Description", "A of it"),
        ("dbo", "t", "a", "Caption", "x"),
    ]
    tables, columns = left.descriptions(asking(descriptions=rows), notes)
    assert (tables, columns) == ({("dbo", "t"): "what's in it"}, {("dbo", "t", "a"): "A of it"})
    assert notes == ["not migrated, the property Caption of t.a"]
    texts: Mapping[tuple[str, str], Any] = {
        ("dbo", "t"): [
            column("a", "varchar", 8, collation="Latin1_General_CI_AI"),
            column("b", "varchar", 8, collation="Latin1_General_CS_AS"),
            column("c", "varchar", 8, collation="Latin1_General_CI_AI"),
            column("d", "varchar", 8, collation="Latin1_General_CI_AS"),
        ]
    }
    assert [*left.of_collations(texts)] == [
        "texts of 2 columns are compared by Latin1_General_CI_AI there (t.a, t.c): "
        "here they are compared exactly, with their case and accents"
    ]
    table = OldTable("T", (column("a", description="A of it"),), (), 0, description="what's in it")
    old = of(table, left_=("index x is not migrated",))
    found = sort([old], Rules(), lambda *_: (None, None))[0]
    made = table_scripts(found.site, False)
    write(tmp_path, [Database("site", old, found, made, rights(old, found, "site"))], "UTC")
    assert (tmp_path / "7_descriptions.psql").read_text() == (
        "comment on table \"site\".\"t\" is 'what''s in it';\n"
    )
    judged = assess(old, found, made, rights(old, found, "site"), "site")
    assert "index x is not migrated" in judged.decisions
    assert judged.descriptions == ({"table": "T", "column": "a", "description": "A of it"},)


@pytest.mark.parametrize(("kind", "length", "width", "declared"), cases(__file__, "types_of_ase"))
def test_types_of_ase(kind: str, length: int, width: int, declared: str) -> None:
    row = ("dbo", "t", "a", kind, length, None, None, 8, None, None, 0, None)
    parts = ase.table_parts(asking(columns=[row], ncharsize=[(width,)]))
    (of_ase,) = parts.columns["dbo", "t"]
    assert of_ase.declared == declared


def test_national_texts_of_ase_are_in_its_own_character_set() -> None:
    as_bytes = reading(column("a", "nvarchar", 80), "eucjis", True)
    assert as_bytes.expression == "convert(varbinary(160), a)"
    assert as_bytes.value(b"\xc6\xfc") == "日"
    assert reading(column("a", "nvarchar", 80), "eucjis", False).expression == "a"


class Identities:
    """A cursor at ASE that gives next identities."""

    def __init__(self, *following: str | None) -> None:
        self.following = iter(following)
        self.asked: list[str] = []

    def execute(self, text: str) -> None:
        self.asked.append(text)

    def fetchall(self) -> list[tuple[str | None]]:
        return [(next(self.following),)]


def test_identities_of_ase_continue_after_the_last_one() -> None:
    """next_identity (SAP ASE, Reference Manual: Building Blocks): the next value, as a text."""
    rows = [
        ("dbo", "t", "a", "int", 4, None, None, 0, None, None, 128, None),
        ("fred", "u", "b", "numeric", 5, 9, 0, 0, None, None, 128, None),
        ("dbo", "v", "c", "int", 4, None, None, 0, None, None, 0, None),
    ]
    parts = ase.table_parts(asking(columns=rows))
    cursor = Identities("5000002", None)
    ase.add_last_identities(cursor, parts)
    assert [parts.columns[table_name][0].last for table_name in parts.columns] == [5_000_001, None, None]
    assert cursor.asked == [
        "select convert(varchar(40), next_identity('t'))",
        "select convert(varchar(40), next_identity('fred.u'))",
    ]
    assert parts.left == []


def test_times_of_seven_decimal_places_lose_one() -> None:
    table = OldTable(
        "t", (OldColumn("a", "datetime2", 8, 27, 7, True), OldColumn("b", "time", 5, 16, 6, True)), (), 0
    )
    assert doubts(of(table), "") == ["t.a: times of seven decimal places, of which six are kept here"]
