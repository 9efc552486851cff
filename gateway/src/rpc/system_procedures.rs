//! The system procedures through which 7.x clients run parameterised text, by name and number (MS-TDS 2.2.6.6).

use crate::describe::Known;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemProcedure {
    ExecuteSql,
    Prepare,
    Execute,
    PrepareAndExecute,
    PrepareAndCall,
    Unprepare,
    ResetConnection,
    DatatypeInfo(Known),
    /// A procedure of server cursors.
    Cursor(CursorProcedure),
    DescribeFirstResultSet,
    DescribeUndeclaredParameters,
}

/// The procedures of server cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorProcedure {
    Change,
    Open,
    Prepare,
    Execute,
    PrepareAndExecute,
    Fetch,
    Option,
    Close,
}

/// Names by number.
const NUMBERED: [&str; 15] = [
    "sp_cursor",
    "sp_cursoropen",
    "sp_cursorprepare",
    "sp_cursorexecute",
    "sp_cursorprepexec",
    "sp_cursorunprepare",
    "sp_cursorfetch",
    "sp_cursoroption",
    "sp_cursorclose",
    "sp_executesql",
    "sp_prepare",
    "sp_execute",
    "sp_prepexec",
    "sp_prepexecrpc",
    "sp_unprepare",
];

impl SystemProcedure {
    pub fn numbered(number: u16) -> Option<SystemProcedure> {
        let name = usize::from(number).checked_sub(1).and_then(|index| NUMBERED.get(index))?;
        SystemProcedure::named(name)
    }

    pub fn named(name: &str) -> Option<SystemProcedure> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "sp_executesql" => SystemProcedure::ExecuteSql,
            "sp_prepare" => SystemProcedure::Prepare,
            "sp_execute" => SystemProcedure::Execute,
            "sp_prepexec" => SystemProcedure::PrepareAndExecute,
            "sp_prepexecrpc" => SystemProcedure::PrepareAndCall,
            "sp_unprepare" | "sp_cursorunprepare" => SystemProcedure::Unprepare,
            "sp_describe_first_result_set" => SystemProcedure::DescribeFirstResultSet,
            "sp_describe_undeclared_parameters" => SystemProcedure::DescribeUndeclaredParameters,
            "sp_reset_connection" => SystemProcedure::ResetConnection,
            "sp_datatype_info" => SystemProcedure::DatatypeInfo(Known::First),
            "sp_datatype_info_90" => SystemProcedure::DatatypeInfo(Known::Xml),
            "sp_datatype_info_100" => SystemProcedure::DatatypeInfo(Known::Times),
            "sp_cursor" => SystemProcedure::Cursor(CursorProcedure::Change),
            "sp_cursoropen" => SystemProcedure::Cursor(CursorProcedure::Open),
            "sp_cursorprepare" => SystemProcedure::Cursor(CursorProcedure::Prepare),
            "sp_cursorexecute" => SystemProcedure::Cursor(CursorProcedure::Execute),
            "sp_cursorprepexec" => SystemProcedure::Cursor(CursorProcedure::PrepareAndExecute),
            "sp_cursorfetch" => SystemProcedure::Cursor(CursorProcedure::Fetch),
            "sp_cursoroption" => SystemProcedure::Cursor(CursorProcedure::Option),
            "sp_cursorclose" => SystemProcedure::Cursor(CursorProcedure::Close),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_by_number_and_name() {
        assert_eq!(SystemProcedure::numbered(10), Some(SystemProcedure::ExecuteSql));
        assert_eq!(SystemProcedure::numbered(13), Some(SystemProcedure::PrepareAndExecute));
        assert_eq!(SystemProcedure::numbered(15), Some(SystemProcedure::Unprepare));
        assert_eq!(SystemProcedure::numbered(2), Some(SystemProcedure::Cursor(CursorProcedure::Open)));
        assert_eq!((SystemProcedure::numbered(0), SystemProcedure::numbered(16)), (None, None));
        assert_eq!(SystemProcedure::named("SP_PrepExecRpc"), Some(SystemProcedure::PrepareAndCall));
        assert_eq!(SystemProcedure::named("put_a"), None);
    }
}
