//! The rules in which SQL Server and ASE differ: each is a row with both values.

use super::conversions::{self, Chart};
use super::types::Type;

type Words = &'static [&'static str];

macro_rules! dialects {
    ($($(#[$doc:meta])* $rule:ident: $of:ty = $sql_server:expr, $ase:expr;)*) => {
        /// T-SQL of SQL Server (clients of TDS 7) or of ASE (clients of TDS 5.0).
        #[derive(Debug)]
        pub struct Dialect { $($(#[$doc])* pub $rule: $of,)* }

        pub static SQL_SERVER: Dialect = Dialect { $($rule: $sql_server,)* };
        pub static ASE: Dialect = Dialect { $($rule: $ase,)* };
    };
}

dialects! {
    /// The protocol of its clients, by which bodies of procedures record how their text was parsed.
    name: &'static str = "tds7", "tds5";
    /// An argument of functions of schema tsql.
    is_ase: bool = false, true;

    // Texts
    /// '' is one blank.
    empty_text_is_blank: bool = false, true;
    /// A function's result without characters is NULL ("Adaptive Server Enterprise treats zero-length strings as the
    /// null value": SAP Sybase IQ, "Character data types" of other Sybase databases).
    empty_result_is_null: bool = false, true;
    /// ASE treats a null text as an empty one.
    concatenation: &'static str = "+", "+|";
    /// Texts of nchar and nvarchar are UTF-16.
    has_wide_texts: bool = true, false;
    /// A char compared or combined with a text keeps its blanks.
    chars_keep_blanks: bool = true, false;
    /// Lengths of types have the limit of SQL Server's pages; ASE's pages have several sizes.
    limits_lengths: bool = true, false;
    /// Variables and returned values may be of text and image.
    large_values_stand_alone: bool = false, true;
    /// text, ntext and image are compared and sorted.
    large_values_compare: bool = false, true;
    float_has_text: bool = true, false;
    /// Converts a whole number to a varchar that is too short for it.
    whole_number_as_varchar: &'static str = "varchar", "sybase_varchar";
    readtext_counts_bytes: bool = false, true;

    // Numbers and times
    /// The scale of a quotient.
    quotient_subtracts_scale: bool = false, true;
    /// An assignment that would lose digits of a decimal is error 241, and CAST truncates them.
    decimals_keep_digits: bool = false, true;
    /// Values of datetime2 and time show their declared digits.
    shows_declared_digits: bool = true, false;
    times_are_added: bool = true, false;
    /// Styles of CONVERT in which the manuals differ.
    refuses_disputed_styles: bool = false, true;
    /// A negative style only gives the order of day, month and year.
    sign_of_read_style: i64 = 1, -1;
    binary_has_styles: bool = true, false;

    // Conversions
    chart: &'static Chart = &conversions::SQL_SERVER, &conversions::ASE;
    operator_error: fn(&str, Type, Type) -> Option<(i32, String)> = conversions::operator_error, conversions::text_error;
    /// Selects of a UNION are converted to a common type.
    combined_columns_convert: bool = true, false;
    /// Functions refuse arguments of other types and NULL without a type.
    checks_arguments: bool = true, false;
    /// The error of a wrong number of arguments where several numbers are allowed.
    wrong_count: (i32, &'static str) = (189, "arguments"), (174, "argument(s)");
    trim_takes_characters: bool = true, false;
    /// The result of ISNULL has the length of the first argument.
    isnull_has_length: bool = true, false;
    has_sql_variant: bool = true, false;

    // Queries
    has_for_xml: bool = true, false;
    has_format: bool = true, false;
    has_generate_series: bool = true, false;
    /// 4121, in FROM 208: there is no such function with an owner.
    refuses_unknown_functions: bool = true, false;
    /// Errors 130, 169, 271, 339, 1033, 4104 of SET and 8156, which ASE does not define.
    is_strict: bool = true, false;
    /// A group includes all its rows (Reference Manual: Commands, "Transact-SQL extensions to group by and having"): a
    /// single row if the keys include the only table's primary key; PostgreSQL accepts no other case.
    groups_have_rows: bool = false, true;
    /// DISTINCT includes the columns of ORDER BY and GROUP BY (Transact-SQL Users Guide, "order by and group by used
    /// with select distinct").
    distinct_counts_keys: bool = false, true;
    top_needs_parentheses: bool = true, false;
    /// `select @text = @text + column … order by`: every row is appended.
    rows_add_to_variables: bool = true, false;
    /// SQL Server documents that an assignment in UPDATE uses the value before it; ASE does not document it.
    update_reads_before: bool = true, false;
    /// `set ansi_nulls off` affects every comparison operator, not only =.
    every_sign_takes_nulls: bool = false, true;
    /// A sign applies to its operand alone (ASE, "Operator precedence"), not to the whole product (SQL Server, the
    /// same): 100 / -10 / 2 is -5 or -20.
    close_signs: bool = false, true;
    /// 10713: a semicolon ends MERGE.
    merge_ends_with_semicolon: bool = true, false;

    // Tables
    has_global_temporary_tables: bool = true, false;
    /// A column declared neither null nor not null takes nulls.
    columns_take_nulls: bool = true, false;
    row_versions_take_nulls: bool = false, true;
    /// An altered column takes nulls unless declared otherwise; in ASE it remains unchanged.
    alter_resets_nulls: bool = true, false;
    /// Nullable columns have variable lengths (Transact-SQL Users Guide, "Nulls require variable-length datatypes"),
    /// without trailing blanks and zeros.
    nullable_columns_vary: bool = false, true;
    /// `drop name` of ALTER TABLE, with the column's default.
    drops_columns: bool = false, true;
    checks_foreign_columns: bool = true, false;
    /// The number of the error for a missing table, if all statements have the same.
    unknown_table: Option<i32> = None, Some(208);
    has_checkident: bool = true, false;
    /// No statement of a text runs if one of its tables is missing.
    demands_tables: bool = false, true;

    // Procedures and the session
    /// RETURN leaves 0 as @@rowcount, with a value 1.
    return_counts_itself: bool = true, false;
    limits_transaction_names: bool = true, false;
    /// A cursor uses the values of variables at its declaration.
    cursors_copy_variables: bool = true, false;
    /// SET XACT_ABORT is on in a trigger.
    triggers_abort: bool = true, false;
    errors_of_triggers_undo: bool = false, true;
    /// A procedure continues after an arithmetic error.
    goes_on_after_arithmetic: bool = false, true;
    /// Options of SET that do not affect results: of messages and plans (Reference Manual: Commands, "set").
    options_beside_results: Words = &["forceplan"], &["forceplan", "prefetch", "showplan", "sort_resources"];
    numbers_of_plans: Words =
        &[], &["parallel_degree", "repartition_degree", "resource_granularity", "scan_parallel_degree"];
    has_goals_of_plans: bool = false, true;
    /// The counters that SET STATISTICS reports in messages.
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
