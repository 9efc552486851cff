"""SQLAlchemy's dialect for T-SQL, by pymssql, without the questions that it asks a Microsoft server first."""

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.mssql.pymssql import MSDialect_pymssql
from sqlalchemy.engine import Connection

NAME = "mssql.ringlog"


class GatewayDialect(MSDialect_pymssql):
    """What those questions would bring out is known of the gateway."""

    supports_statement_cache = True

    def initialize(self, connection: Connection) -> None:
        """Asks nothing: version 2022's syntax, no default schema."""
        self.server_version_info = (16, 0)  # type: ignore[assignment]
        self.default_schema_name = None
        self.default_isolation_level = None
        self._setup_version_attributes()  # type: ignore[no-untyped-call]
        self._supports_nvarchar_max = True
        self.supports_comments = False


registry.register(NAME, __name__, GatewayDialect.__name__)
