//! The rules in which SQL Server and ASE differ: each is a row, with the value of both.

use super::conversions::{self, Chart};
use super::types::Type;

type Words = &'static [&'static str];

macro_rules! dialects {
    ($($(#[$doc:meta])* $rule:ident: $of:ty = $sql_server:expr, $ase:expr;)*) => {
        /// T-SQL as SQL Server or ASE has it. Clients of TDS 7 mean the one, of TDS 5.0 the other.
        #[derive(Debug)]
        pub struct Dialect { $($(#[$doc])* pub $rule: $of,)* }

        pub static SQL_SERVER: Dialect = Dialect { $($rule: $sql_server,)* };
        pub static ASE: Dialect = Dialect { $($rule: $ase,)* };
    };
}

dialects! {
    /// The protocol of its clients: as bodies of procedures say how their text was read.
    name: &'static str = "tds7", "tds5";
    /// As functions of schema tsql take it.
    is_ase: bool = false, true;

    // Texts
    /// '' is one blank.
    empty_text_is_blank: bool = false, true;
    /// A function's text without characters is NULL ("Adaptive Server Enterprise treats zero-length strings as the null
    /// value": SAP Sybase IQ, "Character data types" of other Sybase databases).
    empty_result_is_null: bool = false, true;
    /// ASE takes a null text for an empty one.
    concatenation: &'static str = "+", "+|";
    /// Texts of nchar and nvarchar are UTF-16.
    has_wide_texts: bool = true, false;
    /// A char beside a text keeps its blanks.
    chars_keep_blanks: bool = true, false;
    /// Lengths of types have the limit of SQL Server's pages; ASE's pages have several sizes.
    limits_lengths: bool = true, false;
    /// Variables and returned values may be of text and image.
    large_values_stand_alone: bool = false, true;
    float_has_text: bool = true, false;
    /// The reader of a whole number as a varchar that has no room for it.
    whole_number_as_varchar: &'static str = "varchar", "sybase_varchar";
    readtext_counts_bytes: bool = false, true;

    // Numbers and times
    /// The scale of a quotient.
    quotient_subtracts_scale: bool = false, true;
    /// An assignment that would lose digits of a decimal is error 241, and CAST cuts them off.
    decimals_keep_digits: bool = false, true;
    /// A decimal becomes money rounded, which a numeric column of the same digits refuses.
    money_rounds: bool = false, true;
    /// Values of datetime2 and time show the digits that they are declared with.
    shows_declared_digits: bool = true, false;
    times_are_added: bool = true, false;
    /// Styles of CONVERT in which the manuals differ.
    refuses_disputed_styles: bool = false, true;
    /// A style below 0 only says the order of day, month and year.
    sign_of_read_style: i64 = 1, -1;
    binary_has_styles: bool = true, false;

    // Conversions
    chart: &'static Chart = &conversions::SQL_SERVER, &conversions::ASE;
    operator_error: fn(&str, Type, Type) -> Option<(i32, String)> = conversions::operator_error, conversions::text_error;
    /// Selects of a UNION become of one type.
    combined_columns_convert: bool = true, false;
    /// Functions refuse arguments of other types and NULL without a type.
    checks_arguments: bool = true, false;
    /// The error of a number of arguments where several are right.
    wrong_count: (i32, &'static str) = (189, "arguments"), (174, "argument(s)");
    trim_takes_characters: bool = true, false;
    /// ISNULL gives a text of its first argument's length.
    isnull_has_length: bool = true, false;
    has_sql_variant: bool = true, false;

    // Queries
    has_for_xml: bool = true, false;
    has_format: bool = true, false;
    has_generate_series: bool = true, false;
    /// 4121, and of rows 208: there is no such function of an owner.
    refuses_unknown_functions: bool = true, false;
    /// Errors 130, 169, 1033 and 8156, for which ASE has no rule.
    is_strict: bool = true, false;
    /// A group has all its rows (Reference Manual: Commands, "Transact-SQL extensions to group by and having"): one, where the
    /// keys include the only table's primary key, and nothing else does PostgreSQL accept.
    groups_have_rows: bool = false, true;
    /// Columns of ORDER BY and GROUP BY count in DISTINCT (Transact-SQL Users Guide, "order by and group by used with select
    /// distinct").
    distinct_counts_keys: bool = false, true;
    top_needs_parentheses: bool = true, false;
    /// `select @text = @text + column … order by`: every row adds to it.
    rows_add_to_variables: bool = true, false;
    /// SQL Server documents that an assignment in UPDATE has the value before it; ASE documents nothing.
    update_reads_before: bool = true, false;
    /// `set ansi_nulls off` is of every sign of comparison, and not only of =.
    every_sign_takes_nulls: bool = false, true;
    /// `column=-1` without a blank.
    close_signs: bool = false, true;

    // Tables
    has_global_temporary_tables: bool = true, false;
    /// A column that says neither takes nulls.
    columns_take_nulls: bool = true, false;
    row_versions_take_nulls: bool = false, true;
    /// A column that is altered takes nulls unless it says otherwise; in ASE it stays as it is.
    alter_resets_nulls: bool = true, false;
    /// Columns that take nulls have variable lengths (Transact-SQL Users Guide, "Nulls require variable-length datatypes"),
    /// without blanks and zeros at the ends.
    nullable_columns_vary: bool = false, true;
    /// `drop name` of ALTER TABLE, with the column's default.
    drops_columns: bool = false, true;
    checks_foreign_columns: bool = true, false;
    /// The number of the error of a table that is not there, where it is one for all statements.
    unknown_table: Option<i32> = None, Some(208);
    has_checkident: bool = true, false;
    /// No statement of a text runs when a table of it is not there.
    demands_tables: bool = false, true;

    // Procedures and the session
    limits_transaction_names: bool = true, false;
    /// A cursor has the values that variables have when it is declared.
    cursors_copy_variables: bool = true, false;
    /// SET XACT_ABORT is on in a trigger.
    triggers_abort: bool = true, false;
    errors_of_triggers_undo: bool = false, true;
    /// A procedure goes on after an error of arithmetic.
    goes_on_after_arithmetic: bool = false, true;
    /// Options of SET on which no result depends: of messages and plans (Reference Manual: Commands, "set").
    options_beside_results: Words = &["forceplan"], &["forceplan", "prefetch", "showplan", "sort_resources"];
    numbers_of_plans: Words =
        &[], &["parallel_degree", "repartition_degree", "resource_granularity", "scan_parallel_degree"];
    has_goals_of_plans: bool = false, true;
    /// SET STATISTICS counts them in messages.
    statistics: Words =
        &["io", "time", ","], &["io", "plancost", "resource", "simulate", "subquerycache", "time", ","];
}

impl Default for &Dialect {
    fn default() -> Self {
        &SQL_SERVER
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.name == other.name
    }
}

impl Eq for Dialect {}
