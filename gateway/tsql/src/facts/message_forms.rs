//! The texts of PostgreSQL's errors, and the numbers and texts that T-SQL has for them.

const NO_DATABASE: &str = "Database '%' does not exist. Make sure that the name is entered correctly.";

/// PostgreSQL's text of an error whose number or text in T-SQL does not follow from the SQLSTATE alone.
pub struct MessageForm {
    pub sqlstate: &'static str,
    /// The parts of the text before and after the name.
    pub before: &'static str,
    pub after: &'static str,
    /// None: the number of the SQLSTATE.
    pub number: Option<i32>,
    /// `%` is the name, `^` its part after the last period. None: PostgreSQL's own text.
    pub words: Option<&'static str>,
}

impl MessageForm {
    /// The name between the two parts of the text; None: a different text.
    pub fn name<'a>(&self, sqlstate: &str, text: &'a str) -> Option<&'a str> {
        let is_procedure = || text.split('(').next().is_some_and(|name| name.contains('.'));
        let rest = text.strip_prefix(self.before).filter(|_| sqlstate == self.sqlstate)?;
        let (name, _) = rest.split_once(self.after)?;
        (self.before != FUNCTION || !is_procedure()).then_some(name)
    }
}

const fn form(
    sqlstate: &'static str,
    [before, after]: [&'static str; 2],
    number: Option<i32>,
    words: Option<&'static str>,
) -> MessageForm {
    MessageForm { sqlstate, before, after, number, words }
}

/// Numbers and texts of SQL Server (Database Engine events and errors); the first match applies.
pub const FORMS: &[MessageForm] = &[
    form("0A000", ["unsupported XML feature", ""], None,
        Some("Values of type xml are not supported: this PostgreSQL was built without libxml.")),
    form("0A000", ["WITH CHECK OPTION is supported only on automatically updatable views", ""], Some(4510),
        Some("Could not perform CREATE VIEW because WITH CHECK OPTION was specified and the view is not updatable.")),
    form("0A000", ["cannot truncate a table referenced in a foreign key constraint", ""], Some(4712),
        Some("Cannot truncate the table because it is being referenced by a FOREIGN KEY constraint.")),
    form("0A000", ["DISTINCT is not implemented for window functions", ""], Some(10759),
        Some("Use of DISTINCT is not allowed with the OVER clause.")),
    form("0A000", ["cannot use subquery in check constraint", ""], Some(1046), Some(NO_SUBQUERY)),
    form("0A000", ["cannot use subquery in DEFAULT expression", ""], Some(1046), Some(NO_SUBQUERY)),
    form("0A000", ["cannot use subquery in column generation expression", ""], Some(1046), Some(NO_SUBQUERY)),
    form("0A000", ["cannot use column reference in DEFAULT expression", ""], Some(128),
        Some("The name is not permitted in this context. Valid expressions are constants, constant expressions, and (in \
            some contexts) variables. Column names are not permitted.")),
    form("0A000", ["invalid UNION/INTERSECT/EXCEPT ORDER BY clause", ""], Some(104),
        Some("ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT \
            operator.")),
    form("0A000", ["cannot update column \"", "\" of view \""], Some(4406), Some(OF_DERIVED)),
    form("0A000", ["cannot insert into column \"", "\" of view \""], Some(4406), Some(OF_DERIVED)),
    form("21000", ["more than one row returned by a subquery", ""], None,
        Some("Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , \
             >, >= or when the subquery is used as an expression.")),
    form("21000", ["MERGE command cannot affect row a second time", ""], Some(8672),
        Some("The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target \
             row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table \
             multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP \
             BY clause to group the source rows.")),
    form("22001", ["value too long for type ", ""], None, Some("String or binary data would be truncated.")),
    form("22003", ["numeric field overflow", ""], None,
        Some("Arithmetic overflow error converting numeric to data type numeric.")),
    // raised by procedures that store rows
    form("22003", ["", " is no number"], Some(8023), None),
    form("23514", ["", " is no number"], Some(8023), None),
    form("22003", ["bigint out of range", ""], None,
        Some("Arithmetic overflow error converting expression to data type bigint.")),
    form("22003", ["integer out of range", ""], None,
        Some("Arithmetic overflow error converting expression to data type int.")),
    form("22003", ["smallint out of range", ""], None,
        Some("Arithmetic overflow error converting expression to data type smallint.")),
    form("22003", ["value out of range: overflow", ""], None,
        Some("Arithmetic overflow error converting expression to data type float.")),
    // a compiled procedure has a cursor as a variable
    form("22004", ["cursor variable \"", "\" is null"], Some(16917), Some("Cursor is not open.")),
    form("22012", ["division by zero", ""], None, Some("Divide by zero error encountered.")),
    form("22014", ["argument of ntile must be greater than zero", ""], Some(4116),
        Some("The function 'ntile' takes only a positive int or bigint expression as its input.")),
    form("2201F", ["a negative number raised to a non-integer power", ""], Some(3623),
        Some("An invalid floating point operation occurred.")),
    form("2201F", ["zero raised to a negative power", ""], Some(8134), Some("Divide by zero error encountered.")),
    form("2200H", ["nextval: reached ", ""], None,
        Some("Arithmetic overflow error converting IDENTITY to the data type of its column.")),
    form("23502", ["null value in column \"", "\""], None,
        Some("Cannot insert the value NULL into column '%'; column does not allow nulls.")),
    form("23505", ["could not create unique index", ""], Some(1505), None),
    form("23514", ["value for domain tsql.usmallint violates", ""], None,
        Some("Arithmetic overflow during implicit conversion to a UNSIGNED SMALLINT field.")),
    form("23514", ["value for domain tsql.uint violates", ""], None,
        Some("Arithmetic overflow during implicit conversion to a UNSIGNED INT field.")),
    form("23514", ["value for domain tsql.ubigint violates", ""], None,
        Some("Arithmetic overflow during implicit conversion to a UNSIGNED BIGINT field.")),
    form("23514", ["value for domain tsql.tinyint violates", ""], None,
        Some("Arithmetic overflow error for data type tinyint.")),
    form("23514", ["value for domain tsql.money violates", ""], None,
        Some("Arithmetic overflow error converting expression to data type money.")),
    form("23514", ["value for domain tsql.smallmoney violates", ""], None,
        Some("Arithmetic overflow error converting expression to data type smallmoney.")),
    form("34000", ["cursor \"", "\" does not exist"], None, Some("Cursor is not open.")),
    form("23514", ["check constraint \"", "\" of relation \""], Some(547),
        Some("The ALTER TABLE statement conflicted with the CHECK constraint \"%\".")),
    form("2BP01", ["cannot drop table ", " because other objects depend on it"], Some(3726),
        Some("Could not drop object '%' because it is referenced by a FOREIGN KEY constraint or a view.")),
    form("2BP01", ["cannot drop view ", " because other objects depend on it"], Some(3729),
        Some("Cannot drop the view '%' because it is being referenced by another object.")),
    form("2BP01", ["cannot drop function ", " because other objects depend on it"], Some(3729),
        Some("Cannot drop the function '%' because it is being referenced by another object.")),
    form("42710", ["type \"", "\" already exists"], Some(2714),
        Some("There is already an object named '%' in the database.")),
    form("42710", ["constraint \"", "\" for relation \""], Some(2714),
        Some("There is already an object named '%' in the database.")),
    form("42883", ["procedure ", "("], Some(2812), Some("Could not find stored procedure '%'.")),
    form("42P17", ["generation expression is not immutable", ""], Some(4936),
        Some("A computed column cannot be persisted because the column is non-deterministic.")),
    form("55006", ["cannot DROP TABLE \"", "\" because it is being used"], Some(3702),
        Some("Cannot drop the table '%' because it is currently in use.")),
    form("55000", ["cannot update view \"", "\". Views that do not select from a single"], Some(4405), Some(OF_SEVERAL)),
    form("55000", ["cannot insert into view \"", "\". Views that do not select from a single"], Some(4405), Some(OF_SEVERAL)),
    form("55000", ["cannot delete from view \"", "\". Views that do not select from a single"], Some(4405), Some(OF_SEVERAL)),
    form("55000", ["cannot update view \"", "\". Views "], Some(4403), Some(OF_GROUPS)),
    form("55000", ["cannot insert into view \"", "\". Views "], Some(4403), Some(OF_GROUPS)),
    form("55000", ["cannot delete from view \"", "\". Views "], Some(4403), Some(OF_GROUPS)),
    form("44000", ["new row violates check option", ""], None,
        Some("The attempted insert or update failed because the target view either specifies WITH CHECK OPTION or spans \
            a view that specifies WITH CHECK OPTION and one or more rows resulting from the operation did not qualify \
            under the CHECK OPTION constraint.")),
    form("54001", ["stack depth limit exceeded", ""], None,
        Some("Maximum stored procedure, function, trigger, or view nesting level exceeded.")),
    form("428C9", ["computed: cannot insert a non-DEFAULT value into column \"", "\""], Some(271), Some(OF_COMPUTED)),
    form("428C9", ["computed: column \"", "\" can only be updated to DEFAULT"], Some(271), Some(OF_COMPUTED)),
    form("428C9", ["cannot insert a non-DEFAULT value into column \"", "\""], None,
        Some("Cannot insert explicit value for identity column when IDENTITY_INSERT is set to OFF.")),
    form("428C9", ["column \"", "\" can only be updated to DEFAULT"], Some(8102),
        Some("Cannot update identity column '%'.")),
    form("42601", ["both default and identity specified for column \"", "\""], Some(1754),
        Some("Defaults cannot be created on columns with an IDENTITY attribute. Column '%'.")),
    form("42601", ["each ", " query must have the same number of columns"], Some(205),
        Some("All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of \
            expressions in their target lists.")),
    form("42601", ["INSERT has more expressions than target columns", ""], Some(213),
        Some("Column name or number of supplied values does not match table definition.")),
    form("42601", ["zero-length delimited identifier", ""], Some(1038),
        Some("An object or column name is missing or empty. Aliases defined as \"\" or [] are not allowed.")),
    form("42611", ["computed: cannot specify USING when altering type of generated column", ""], Some(4928),
        Some("Cannot alter a column that is 'COMPUTED'.")),
    form("42701", ["column \"", "\" appears twice in"], Some(1909),
        Some("Cannot use duplicate column names in index. Column name '%' listed more than once.")),
    form("42701", ["column \"", "\" specified more than once"], Some(264),
        Some("The column name '%' is specified more than once in the SET clause or column list of an INSERT. A \
             column cannot be assigned more than one value in the same clause.")),
    form("42701", ["column \"", "\" of relation \""], Some(2705),
        Some("Column names in each table must be unique. Column name '%' is specified more than once.")),
    form("42702", ["column reference \"", "\" is ambiguous"], None, Some("Ambiguous column name '%'.")),
    form("42703", ["column \"", "\" named in key does not exist"], Some(1911),
        Some("Column name '%' does not exist in the target table or view.")),
    form("42703", ["column \"", "\""], None, Some("Invalid column name '%'.")),
    form("42703", ["column ", " does not exist"], None, Some("Invalid column name '^'.")),
    form("42704", ["trigger \"", "\" for table \""], Some(4920),
        Some("ALTER TABLE failed because trigger '%' on the table does not exist.")),
    form("42704", ["index \"", "\" does not exist"], Some(3701),
        Some("Cannot drop the index '%', because it does not exist or you do not have permission.")),
    form("42704", ["constraint \"", "\" of relation \""], Some(3728), Some("'%' is not a constraint.")),
    form("42704", ["constraint \"", ""], Some(3728), None),
    form("42704", ["type \"tsql.ci_", "\" does not exist"], Some(102),
        Some("A collation without case is not supported here: it needs PostgreSQL 18, and a superuser as the installer.")),
    form("42712", ["table name \"", "\""], Some(1011),
        Some("The correlation name '%' is specified multiple times in a FROM clause.")),
    form("42712", ["WITH query name \"", "\" specified more than once"], Some(239),
        Some("Duplicate common table expression name '%' was specified.")),
    form("42725", ["operator is not unique", ""], Some(8117), None),
    form("42803", ["aggregate function calls cannot be nested", ""], Some(130),
        Some("Cannot perform an aggregate function on an expression containing an aggregate or a subquery.")),
    form("42803", ["arguments to GROUPING must be grouping expressions", ""], Some(8161),
        Some("An argument of the GROUPING function does not match any of the expressions in the GROUP BY clause.")),
    form("42803", ["aggregate functions are not allowed in WHERE", ""], Some(147),
        Some("An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING \
            clause or a select list, and the column being aggregated is an outer reference.")),
    form("42803", ["aggregate functions are not allowed in GROUP BY", ""], Some(144),
        Some("Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY \
            clause.")),
    form("42803", ["column \"", "\" must appear in the GROUP BY clause"], None,
        Some("Column '%' is invalid because it is not contained in either an aggregate function or the GROUP BY \
            clause.")),
    form("42830", ["there is no unique constraint matching given keys for referenced table \"", "\""], Some(1776),
        Some("There are no primary or candidate keys in the referenced table '%' that match the referencing \
            column list in the foreign key.")),
    form("42830", ["number of referencing and referenced columns for foreign key disagree", ""], Some(8139),
        Some("Number of referencing columns in foreign key differs from number of referenced columns.")),
    form("42804", ["foreign key constraint \"", "\" cannot be implemented"], Some(1778), None),
    form("42804", ["column \"", "\" is of type "], None,
        Some("Implicit conversion to the data type of column '%' is not allowed. Use the CONVERT function to run this \
            query.")),
    form("42804", ["recursive query \"", "\""], Some(240),
        Some("Types don't match between the anchor and the recursive part of a recursive query.")),
    form("42809", ["cannot open relation \"", "\""], Some(11726), Some("Object '%' is not a sequence object.")),
    form("42809", ["cannot create index on relation \"", "\""], Some(1939),
        Some("Cannot create index on view '%' because the view is not schema bound.")),
    form("42809", ["\"", "\" is not a table"], Some(4708),
        Some("Could not truncate object '%' because it is not a table.")),
    form("42809", ["ALTER action ", " cannot be performed on relation \""], Some(4909),
        Some("Cannot alter the object because it is not a table.")),
    form("42804", ["UNION types ", " cannot be matched"], None, Some(OF_OTHER_TYPES)),
    form("42804", ["INTERSECT types ", " cannot be matched"], None, Some(OF_OTHER_TYPES)),
    form("42804", ["EXCEPT types ", " cannot be matched"], None, Some(OF_OTHER_TYPES)),
    form("42883", ["function tsql.sum(", ")"], Some(8117), Some("Operand data type is invalid for sum operator.")),
    form("42883", ["function tsql.avg(", ")"], Some(8117), Some("Operand data type is invalid for avg operator.")),
    form("42883", ["function tsql.min(", ")"], Some(8117), Some("Operand data type is invalid for min operator.")),
    form("42883", ["function tsql.max(", ")"], Some(8117), Some("Operand data type is invalid for max operator.")),
    form("42883", ["function tsql.divided(", ""], Some(402),
        Some("The data types of the operands are incompatible in the divide operator.")),
    form("42883", ["function tsql.", "("], Some(8116),
        Some("An argument of the % function has a data type that is invalid for it.")),
    form("42883", ["operator does not exist: - ", ""], Some(8117), Some(NO_MINUS)),
    form("42883", ["operator does not exist: tsql.- ", ""], Some(8117), Some(NO_MINUS)),
    form("42883", ["operator does not exist", ""], Some(402), None),
    form("42883", [FUNCTION, "("], Some(195),
        Some("'%' is not a recognized built-in function name, nor is there a function of this name that takes \
            these arguments.")),
    form("42P01", ["relation \"pg_temp.", "\" does not exist"], None, Some("Invalid object name '%'.")),
    form("42P01", ["relation \"", "\" does not exist"], None, Some("Invalid object name '%'.")),
    form("3F000", ["schema \"", "\" does not exist"], None, Some(NO_DATABASE)),
    form("3F000", ["Database '", "' does not exist."], None, Some(NO_DATABASE)),
    form("3F000", ["Could not locate entry in sysdatabases for database '", "'. No entry"], None, Some(NO_DATABASE)),
    form("42P01", ["missing FROM-clause entry for table \"", "\""], Some(4104),
        Some("The multi-part identifier \"%\" could not be bound.")),
    form("42P01", ["invalid reference to FROM-clause entry for table \"", "\""], Some(4104),
        Some("The multi-part identifier \"%\" could not be bound.")),
    form("42P07", ["relation \"", "\" already exists"], None,
        Some("There is already an object named '%' in the database.")),
    form("42P10", ["ORDER BY position ", " "], Some(108),
        Some("The ORDER BY position number % is out of range of the number of items in the select list.")),
    form("42P10", ["for SELECT DISTINCT, ORDER BY expressions must appear in select list", ""], Some(145),
        Some("ORDER BY items must appear in the select list if SELECT DISTINCT is specified.")),
    form("42P16", ["multiple primary keys for table \"", "\""], Some(1779),
        Some("Table '%' already has a primary key defined on it.")),
    form("42P16", ["column \"", "\" is in a primary key"], Some(5074),
        Some("The primary key is dependent on column '%'.")),
    form("42P20", ["frame ", ""], Some(4193),
        Some("The rows between these bounds are not a valid window frame and cannot be used with the OVER clause.")),
    form("42P20", ["window functions are not allowed in", ""], Some(4108),
        Some("Windowed functions can only appear in the SELECT or ORDER BY clauses.")),
];

/// The SQLSTATE of errors whose text is followed by its detail.
pub const WITH_DETAIL: &str = "55000";

/// Precedes the text of an error about a computed column, which is otherwise that of an identity column.
pub const GENERATED: &str = "computed: ";

const OF_COMPUTED: &str =
    "The column \"%\" cannot be modified because it is either a computed column or is the result of a UNION operator.";

const OF_SEVERAL: &str =
    "View or function '%' is not updatable because the modification affects multiple base tables.";
const OF_GROUPS: &str =
    "Cannot update the view or function '%' because it contains aggregates, or a DISTINCT or GROUP BY clause.";
const OF_DERIVED: &str =
    "Update or insert of a view failed because it contains a derived or constant field: column '%'.";
const NO_SUBQUERY: &str = "Subqueries are not allowed in this context. Only scalar expressions are allowed.";
const NO_MINUS: &str = "Operand data type is invalid for minus operator.";

/// T-SQL converts them, as does the translation if it knows both types.
const OF_OTHER_TYPES: &str =
    "A UNION, INTERSECT or EXCEPT of columns of different types (%) is not supported where \
                              these are not known before: convert one of them.";

/// The beginning of the error text for a missing function: a built-in one, or with a schema a procedure.
pub const FUNCTION: &str = "function ";
