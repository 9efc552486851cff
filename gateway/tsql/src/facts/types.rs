//! T-SQL's types and the types of PostgreSQL that hold their values.

/// The kind of a type's values; the order is T-SQL's precedence, lowest first (SQL Server, "Data type precedence").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Of PostgreSQL alone.
    Postgres,
    Binary,
    Text,
    Guid,
    Bit,
    Integer,
    Money,
    Decimal,
    Float,
    Time,
    Date,
    DateTime,
    Xml,
    Variant,
}

/// Whether the letters of a text have a case when it is compared. The later precede the earlier, as the collation of a
/// column precedes that of the database ("Collation Precedence").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Case {
    /// By the database's default collation: a literal, a variable, or an expression of them.
    #[default]
    OfDatabase,
    /// Differs from the former only in a database whose collation has no case.
    Counts,
    /// Its type in PostgreSQL is tsql.ci_varchar or tsql.ci_char.
    Ignored,
}

/// A type of T-SQL. `oid` is the PostgreSQL type that holds its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub name: &'static str,
    pub family: Family,
    pub oid: u32,
    /// For texts and binaries; None: unlimited.
    pub length: Option<u32>,
    /// For decimals and money.
    pub precision: Option<u8>,
    pub scale: Option<u8>,
    /// Decimals of the second, if fewer than seven.
    pub fraction: Option<u8>,
    /// One of ASE's types that begin at 0: only in assignments; the value has the signed type.
    pub unsigned: bool,
    /// The second of two names of one PostgreSQL type: nchar, nvarchar and ntext for char, varchar and text, numeric
    /// for decimal, timestamp for binary(8).
    pub twin: bool,
    /// It counts as a narrow text, though it may have any characters and is sent as the national type.
    pub kept: bool,
    /// Of texts.
    pub case: Case,
}

impl Default for Type {
    fn default() -> Type {
        UNKNOWN
    }
}

/// Digits of the longest decimal.
pub const MOST_DIGITS: u8 = 38;
/// Characters of the longest varchar of an expression.
pub const LONGEST_VARCHAR: u32 = 8000;
/// Decimals of the second of a type declared without a number.
pub const MOST_FRACTION: u8 = 7;

const BYTEA: u32 = 17;
const BPCHAR: u32 = 1042;
const VARCHAR_OID: u32 = 1043;
const TEXT_OID: u32 = 25;
const NUMERIC: u32 = 1700;

const fn plain(name: &'static str, family: Family, oid: u32) -> Type {
    Type {
        name,
        family,
        oid,
        length: None,
        precision: None,
        scale: None,
        fraction: None,
        unsigned: false,
        twin: false,
        kept: false,
        case: Case::OfDatabase,
    }
}

const fn scaled(name: &'static str, family: Family, precision: u8, scale: u8) -> Type {
    Type { precision: Some(precision), scale: Some(scale), ..plain(name, family, NUMERIC) }
}

pub const BIT: Type = plain("bit", Family::Bit, 16);
pub const TINYINT: Type = plain("tinyint", Family::Integer, 21);
pub const SMALLINT: Type = plain("smallint", Family::Integer, 21);
pub const INT: Type = plain("int", Family::Integer, 23);
pub const BIGINT: Type = plain("bigint", Family::Integer, 20);
pub const REAL: Type = plain("real", Family::Float, 700);
pub const FLOAT: Type = plain("float", Family::Float, 701);
pub const MONEY: Type = scaled("money", Family::Money, 19, 4);
pub const SMALLMONEY: Type = scaled("smallmoney", Family::Money, 10, 4);
pub const VARCHAR: Type = plain("varchar", Family::Text, VARCHAR_OID);
pub const CHAR: Type = plain("char", Family::Text, BPCHAR);
pub const TEXT: Type = plain("text", Family::Text, TEXT_OID);
pub const VARBINARY: Type = plain("varbinary", Family::Binary, BYTEA);
pub const BINARY: Type = plain("binary", Family::Binary, BYTEA);
/// The version of a row, or a variable that holds one.
pub const ROWVERSION: Type = Type { length: Some(8), ..BINARY.twin() };
pub const IMAGE: Type = plain("image", Family::Binary, BYTEA);
pub const DATE: Type = plain("date", Family::Date, 1082);
pub const TIME: Type = plain("time", Family::Time, 1083);
pub const DATETIME: Type = plain("datetime", Family::DateTime, 1114);
pub const SMALLDATETIME: Type = plain("smalldatetime", Family::DateTime, 1114);
pub const DATETIME2: Type = plain("datetime2", Family::DateTime, 1114);
/// A timestamp of PostgreSQL that is a datetime or a datetime2: displayed as a datetime, but not rounded.
pub const MOMENT: Type = Type { fraction: Some(6), ..DATETIME };
/// The gateway's number of PostgreSQL's tsql.datetimeoffset, whose oid differs between databases.
pub const DATETIMEOFFSET_OID: u32 = u32::MAX;
pub const DATETIMEOFFSET: Type = plain("datetimeoffset", Family::DateTime, DATETIMEOFFSET_OID);
/// A timestamptz of PostgreSQL, displayed in the facility's zone.
pub const INSTANT: Type = Type { oid: 1184, ..MOMENT };
pub const GUID: Type = plain("uniqueidentifier", Family::Guid, 2950);
pub const XML: Type = plain("xml", Family::Xml, 142);
/// The gateway's number of PostgreSQL's tsql.sql_variant.
pub const SQL_VARIANT_OID: u32 = u32::MAX - 1;
/// A value of any short type, stored with that type.
pub const SQL_VARIANT: Type = plain("sql_variant", Family::Variant, SQL_VARIANT_OID);
/// A table argument or parameter, whose value names the temporary table of a variable.
pub const TABLE: Type = plain("table", Family::Text, TEXT_OID);
pub const SYSNAME: Type = Type { length: Some(128), ..plain("sysname", Family::Text, VARCHAR_OID) };

/// What PostgreSQL decides: a placeholder's type, and that of values which it computes from one.
pub const UNKNOWN: Type = of_postgres(705);
/// The type of the word NULL, which its use decides.
pub const NULL: Type = Type { name: "NULL", ..UNKNOWN };

/// A type of PostgreSQL that T-SQL does not have.
pub const fn of_postgres(oid: u32) -> Type {
    plain("", Family::Postgres, oid)
}

/// PostgreSQL's numeric without digits.
pub const ANY_NUMERIC: Type = of_postgres(NUMERIC);

/// `decimal(precision, scale)`
pub const fn decimal(precision: u8, scale: u8) -> Type {
    scaled("decimal", Family::Decimal, precision, scale)
}

/// `varchar(length)`; None: unlimited.
pub const fn varchar(length: Option<u32>) -> Type {
    Type { length, ..VARCHAR }
}

/// `numeric(precision, scale)`
pub const fn numeric(precision: u8, scale: u8) -> Type {
    decimal(precision, scale).twin()
}

/// `nvarchar(length)`; None: unlimited.
pub const fn nvarchar(length: Option<u32>) -> Type {
    varchar(length).twin()
}

/// The type that has PostgreSQL's type; a numeric without digits is PostgreSQL's alone.
pub fn of_oid(oid: u32, typmod: i32) -> Type {
    let packed = typmod - 4;
    match oid {
        NUMERIC if packed >= 0 => numeric((packed >> 16 & 0xFF) as u8, (packed & 0x7FF) as u8),
        // what declares nothing
        TEXT_OID => VARCHAR.twin(),
        VARCHAR_OID | BPCHAR => {
            let of = if oid == BPCHAR { CHAR.twin() } else { VARCHAR.twin() };
            Type { length: u32::try_from(packed).ok().filter(|length| *length > 0), ..of }
        }
        _ => [
            BIT,
            VARBINARY,
            BIGINT,
            SMALLINT,
            INT,
            XML,
            REAL,
            FLOAT,
            DATE,
            TIME,
            MOMENT,
            INSTANT,
            DATETIMEOFFSET,
            SQL_VARIANT,
            GUID,
        ]
        .into_iter()
        .find(|of| of.oid == oid)
        .unwrap_or(of_postgres(oid)),
    }
}

impl Type {
    /// The type as declared: `nvarchar(40)`, `decimal(10,2)`, `varbinary(max)`.
    pub fn declared(&self) -> String {
        let name = self.display_name();
        if self.is_row_version() {
            return name.to_owned();
        }
        match (self.name, self.length, self.precision, self.fraction) {
            ("char" | "varchar" | "binary" | "varbinary", Some(length), ..) => format!("{name}({length})"),
            ("char" | "varchar" | "binary" | "varbinary", None, ..) => format!("{name}(max)"),
            ("decimal", _, Some(precision), _) => {
                format!("{name}({precision},{})", self.scale.unwrap_or(0))
            }
            (.., Some(digits)) => format!("{name}({digits})"),
            _ => name.to_owned(),
        }
    }

    /// The declaration of the base type of a sql_variant, with all its digits; None if sql_variant excludes the type,
    /// or if its length is unknown.
    pub fn variant_base(&self) -> Option<String> {
        let is_moment = *self == MOMENT || *self == INSTANT;
        Some(match self.family {
            Family::Variant | Family::Xml => return None,
            _ if self.is_row_version() => return None,
            Family::Text | Family::Binary if self.length.is_none() => return None,
            _ if is_moment => String::from("datetime2(6)"),
            _ if self.name == SYSNAME.name => format!("nvarchar({})", self.length.unwrap_or(128)),
            Family::Time | Family::DateTime if !matches!(self.name, "datetime" | "smalldatetime") => {
                format!("{}({})", self.name, self.fraction.unwrap_or(MOST_FRACTION))
            }
            _ => self.declared(),
        })
    }

    /// Its name in messages.
    pub fn display_name(&self) -> &'static str {
        match (self.name, self.twin) {
            ("char", true) => "nchar",
            ("varchar", true) => "nvarchar",
            ("text", true) => "ntext",
            ("decimal", true) => "numeric",
            ("binary", true) => "timestamp",
            (name, _) => name,
        }
    }

    /// A text of any characters: nchar, nvarchar, ntext and sysname.
    pub fn is_national(&self) -> bool {
        self.is_text() && (self.twin || self.name == SYSNAME.name)
    }

    /// A text whose characters count as UTF-16.
    pub fn is_wide(&self) -> bool {
        self.is_national() && !self.kept
    }

    /// The type of a text with the characters of these values too.
    pub fn with_characters(self, of: impl IntoIterator<Item = Type>) -> Type {
        let (twin, is_wide) = of.into_iter().fold((self.twin, self.is_wide()), |(twin, is_wide), of| {
            (twin | of.is_national(), is_wide | of.is_wide())
        });
        Type { twin, kept: twin && !is_wide, ..self }
    }

    pub fn is_row_version(&self) -> bool {
        self.name == BINARY.name && self.twin
    }

    pub(super) const fn without_sign(self) -> Type {
        Type { unsigned: true, ..self }
    }

    /// The type of its values.
    pub const fn of_values(self) -> Type {
        Type { unsigned: false, ..self }
    }

    /// The domain of schema tsql for the values of an unsigned type, and the greatest of them; None for any other type.
    pub fn domain_from_zero(&self) -> Option<(&'static str, u64)> {
        self.unsigned.then_some(match self.oid {
            23 => ("usmallint", u16::MAX as u64),
            20 => ("uint", u32::MAX as u64),
            _ => ("ubigint", u64::MAX),
        })
    }

    pub const fn twin(self) -> Type {
        Type { twin: true, ..self }
    }

    /// The type of values made of this and of texts with this case.
    pub fn with_case(self, case: Case) -> Type {
        Type { case: if self.is_text() { self.case.max(case) } else { Case::OfDatabase }, ..self }
    }

    /// A case-insensitive text.
    pub fn folds(&self) -> bool {
        self.case == Case::Ignored
    }

    /// PostgreSQL's type modifier, as in RowDescription; -1 for none.
    pub fn typmod(&self) -> i32 {
        match (self.oid, self.precision, self.length) {
            (NUMERIC, Some(precision), _) => {
                (i32::from(precision) << 16 | i32::from(self.scale.unwrap_or(0))) + 4
            }
            (VARCHAR_OID | BPCHAR, _, Some(length)) => length.max(1) as i32 + 4,
            _ => -1,
        }
    }

    /// Whether all values of PostgreSQL's type are valid for this type.
    pub fn is_plain(&self) -> bool {
        let has_all = [INT, BIGINT, SMALLINT, BIT, REAL, FLOAT, DATE, GUID, TEXT].map(|of| of.name);
        !self.unsigned && has_all.contains(&self.name) || (self.is_text() && self.length.is_none())
    }

    /// The type in PostgreSQL's SQL, for a cast or a column.
    pub fn sql(&self) -> String {
        let name = self.pg_name();
        match (self.oid, self.precision, self.length, self.fraction) {
            (NUMERIC, Some(precision), ..) => format!("numeric({precision},{})", self.scale.unwrap_or(0)),
            (VARCHAR_OID | BPCHAR, _, Some(length), _) => format!("{name}({})", length.max(1)),
            (DATETIMEOFFSET_OID, ..) => name.to_owned(),
            (.., Some(digits)) => format!("{name}({digits})"),
            _ => name.to_owned(),
        }
    }

    fn pg_name(&self) -> &'static str {
        match self.oid {
            BPCHAR if self.folds() => "tsql.ci_char",
            VARCHAR_OID | TEXT_OID if self.folds() => "tsql.ci_varchar",
            16 => "boolean",
            BYTEA => "bytea",
            20 => "bigint",
            21 => "smallint",
            23 => "integer",
            142 => "xml",
            700 => "real",
            701 => "double precision",
            BPCHAR => "char",
            VARCHAR_OID => "varchar",
            1082 => "date",
            1083 => "time",
            1114 => "timestamp",
            1184 => "timestamptz",
            DATETIMEOFFSET_OID => "tsql.datetimeoffset",
            SQL_VARIANT_OID => "tsql.sql_variant",
            NUMERIC => "numeric",
            2950 => "uuid",
            _ => "text",
        }
    }

    /// text, ntext and image.
    pub fn is_large(&self) -> bool {
        self.name == TEXT.name || self.name == IMAGE.name
    }

    /// Whether values can be keys of an index.
    pub fn is_indexable(&self) -> bool {
        let is_endless = matches!(self.name, "varchar" | "varbinary") && self.length.is_none();
        !self.is_large() && self.name != XML.name && (!is_endless || self.is_row_version())
    }

    /// Whether T-SQL has the type.
    pub fn is_tsql(&self) -> bool {
        self.family != Family::Postgres
    }

    /// The type if T-SQL has it.
    pub fn in_tsql(self) -> Option<Type> {
        Some(self).filter(Type::is_tsql)
    }

    pub fn is_text(&self) -> bool {
        self.family == Family::Text
    }

    pub fn is_exact(&self) -> bool {
        matches!(self.family, Family::Bit | Family::Integer | Family::Money | Family::Decimal)
    }

    pub fn is_number(&self) -> bool {
        self.is_exact() || self.family == Family::Float
    }

    pub fn is_time(&self) -> bool {
        matches!(self.family, Family::Date | Family::DateTime | Family::Time)
    }

    /// Precision and scale in decimal arithmetic.
    pub fn digits(&self) -> Option<(u8, u8)> {
        match (self.precision, self.name) {
            (Some(precision), _) => Some((precision, self.scale.unwrap_or(0))),
            (_, "bit") => Some((1, 0)),
            (_, "tinyint") => Some((3, 0)),
            (_, "smallint") => Some((5, 0)),
            (_, "int") => Some((10, 0)),
            (_, "bigint") => Some((19, 0)),
            _ => None,
        }
    }

    /// The position in the order of precedence; of two types of one family the wider one is higher.
    fn rank(&self) -> (Family, i32) {
        let within = match self.family {
            Family::Integer => i32::from(self.digits().unwrap_or((0, 0)).0),
            Family::Float => i32::from(*self == FLOAT),
            Family::DateTime => match self.name {
                "smalldatetime" => 0,
                "datetime" => 1,
                "datetimeoffset" => 3,
                _ => 2,
            },
            _ => self.typmod(),
        };
        (self.family, within)
    }
}

/// The common type of values of these types, as in CASE; UNKNOWN if PostgreSQL decides it.
pub fn unified(types: impl IntoIterator<Item = Type>) -> Type {
    let known: Vec<Type> = types.into_iter().collect();
    if !known.iter().all(Type::is_tsql) {
        return UNKNOWN;
    }
    let is_of_bytes = |of: &Type| of.is_text() || of.family == Family::Binary;
    if known.iter().any(Type::is_text) && known.iter().all(is_of_bytes) {
        let case = known.iter().map(|of| of.case).max().unwrap_or_default();
        if let Some(large) = known.iter().find(|of| of.name == TEXT.name) {
            return Type { twin: large.twin, case, ..TEXT };
        }
        let longest = known.iter().map(|of| of.length).collect::<Option<Vec<_>>>();
        let length = longest.and_then(|lengths| lengths.into_iter().max());
        let is_padded =
            length.is_some() && known.iter().all(|of| of.name == CHAR.name || of.name == BINARY.name);
        let of = Type { length, case, ..if is_padded { CHAR } else { VARCHAR } };
        return of.with_characters(known);
    }
    if known.iter().all(Type::is_exact) && known.iter().any(|of| of.family == Family::Decimal) {
        let digits = || known.iter().map(|of| of.digits().unwrap_or((MOST_DIGITS, 0)));
        let scale = digits().map(|(_, scale)| scale).max().unwrap_or(0);
        let whole = digits().map(|(precision, scale)| precision - scale).max().unwrap_or(0);
        let twin = known.iter().any(|of| of.twin);
        return Type { twin, ..decimal((whole + scale).min(MOST_DIGITS), scale) };
    }
    // the first of those with the highest rank, with the most decimals of the second among them
    let higher = |highest: Type, of: Type| if of.rank() > highest.rank() { of } else { highest };
    let Some(highest) = known.iter().copied().reduce(higher) else { return UNKNOWN };
    let is_finer = |of: &&Type| of.name == highest.name || of.family == Family::Time;
    let fractions = known.iter().filter(is_finer).map(|of| of.fraction);
    let most = fractions.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other))).flatten();
    if highest.name == DATETIME.name {
        highest
    } else {
        Type { fraction: most, ..highest }
    }
}
