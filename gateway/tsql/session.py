"""What the session answers: @@variables, and functions that compile to such."""

from ringlog.gateway.tsql.types import INT, SMALLINT, Type, decimal, varchar

_NAME = varchar(255)

VARIABLES: dict[str, Type] = {
    "@@client_csname": _NAME,
    "@@datefirst": INT,
    "@@error": INT,
    "@@identity": decimal(38, 0),
    "@@isolation": INT,
    "@@langid": INT,
    "@@language": _NAME,
    "@@lock_timeout": INT,
    "@@max_precision": INT,
    "@@maxcharlen": INT,
    "@@maxpagesize": INT,
    "@@microsoftversion": INT,
    "@@ncharsize": INT,
    "@@nestlevel": INT,
    "@@options": INT,
    "@@packet_size": INT,
    "@@pagesize": INT,
    "@@rowcount": INT,
    "@@servername": _NAME,
    "@@servicename": _NAME,
    "@@spid": SMALLINT,
    "@@textsize": INT,
    "@@trancount": INT,
    "@@tranchained": INT,
    "@@unicharsize": INT,
    "@@version": _NAME,
}
"""The variables of the session that a text may name."""

FUNCTIONS: dict[str, tuple[str, Type]] = {
    "app_name": ("@@app_name", _NAME),
    "db_name": ("@@db_name", _NAME),
    "error_line": ("@@error_line", INT),
    "error_message": ("@@error_message", varchar(4000)),
    "error_number": ("@@error_number", INT),
    "error_procedure": ("@@error_procedure", _NAME),
    "error_severity": ("@@error_severity", INT),
    "error_state": ("@@error_state", INT),
    "host_name": ("@@host_name", _NAME),
    "original_login": ("@@suser_name", _NAME),
    "scope_identity": ("@@identity", decimal(38, 0)),
    "suser_name": ("@@suser_name", _NAME),
    "suser_sname": ("@@suser_name", _NAME),
    "user_name": ("@@user_name", _NAME),
    "xact_state": ("@@xact_state", INT),
}
"""Functions without arguments, the variable that the session fills for each, and its type."""

NILADIC = {
    "current_user": "user_name",
    "session_user": "user_name",
    "system_user": "suser_name",
    "user": "user_name",
}
"""Functions that stand without parentheses."""

FILLED = dict(FUNCTIONS.values())
