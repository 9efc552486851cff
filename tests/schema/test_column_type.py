"""A column's type is one value with its forms in other systems."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ringlog.schema.column_type import NUMBERS, TYPES, ColumnType, Kind
from ringlog.schema.facility import Column

TEXTS = (
    *NUMBERS,
    *(f"{kind}[]" for kind in NUMBERS),
    *("numeric(10,2)", "datetime", "varchar(40)", "varchar(40)[]", "text"),
)
NO_TYPES = (
    *("", "float", "varchar", "varchar(0)", "varchar(10485761)", "varchar(4,2)", "real(4)", "real[][]"),
    *("numeric(39,0)", "numeric(0,0)", "numeric(2,3)", "numeric(5)", "numeric(9,2)[]"),
    *("datetime[]", "text[]", "text(3)"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_is_its_text(text: str) -> None:
    kind = ColumnType.of(text)
    assert str(kind) == text
    assert pickle.loads(pickle.dumps(kind)) == kind == Column("a", "s", text).type
    # SQLAlchemy's text is compared with the catalogue
    assert kind.sqlalchemy.compile(dialect=postgresql.dialect()) == kind.sql


def test_every_kind_has_a_text() -> None:
    assert {ColumnType.of(text).kind for text in TEXTS} == {*Kind}


@pytest.mark.parametrize("text", NO_TYPES)
def test_no_other_text_is_a_type(text: str) -> None:
    with pytest.raises(ValueError, match="is not a column type"):
        ColumnType.of(text)


@pytest.mark.parametrize("kind", [ColumnType(kind) for kind in NUMBERS], ids=str)
def test_numbers_have_the_same_width_everywhere(kind: ColumnType) -> None:
    assert np.dtype(kind.numpy).itemsize == np.dtype(kind.array).itemsize == kind.width
    if kind.kind is not Kind.BIT:
        assert pa.from_numpy_dtype(np.dtype(kind.numpy)) == kind.arrow
    waveform = ColumnType.of(f"{kind}[]")
    assert waveform.arrow == pa.list_(kind.arrow)
    assert (waveform.element, waveform.width) == (kind, None)


@pytest.mark.parametrize("text", TEXTS)
def test_types_of_postgresql_with_and_without_size(text: str) -> None:
    """In format_type's form, with and without the type's modifier."""
    kind = ColumnType.of(text)
    said = kind.sql.lower().replace("varchar", "character varying").replace(", ", ",")
    assert ColumnType.of_postgresql(said) == kind
    of_any_size = replace(kind, length=None, digits=None, scale=None)
    assert ColumnType.of_postgresql(re.sub(r"\(.*\)", "", said)) == of_any_size


@pytest.mark.parametrize("said", ["uuid", "numeric(3,1)[]", "text[]", "timestamp(3) with time zone"])
def test_other_types_of_postgresql_are_refused(said: str) -> None:
    assert ColumnType.of_postgresql(said) is None


def test_a_type_is_of_one_family() -> None:
    for text in TEXTS:
        kind = ColumnType.of(text)
        families = (kind.is_text, kind.is_number, kind.is_packed, kind.kind is Kind.DATETIME)
        assert sum(families) == 1, text


def test_types_have_postgresql_s_oids(postgres_url: sa.URL) -> None:
    query = sa.text("select oid::integer, format_type(oid, null) from unnest(:oids ::oid[]) as oid")
    with sa.create_engine(postgres_url).connect() as connection:
        names = connection.execute(query, {"oids": [*TYPES]}).all()
    assert {oid: ColumnType.of_postgresql(name) for oid, name in names} == TYPES
    assert {replace(ColumnType.of(text), length=None, digits=None, scale=None) for text in TEXTS} == {
        *TYPES.values()
    }
