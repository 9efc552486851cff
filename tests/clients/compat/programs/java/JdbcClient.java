import static java.util.Map.entry;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Blob;
import java.sql.CallableStatement;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import javax.sql.PooledConnection;

/**
 * A JDBC client that takes part in the conversation of tests/clients/compat/conversation.py.
 *
 * <p>java JdbcClient URL USER
 */
public final class JdbcClient {
    private record Param(String type, String name, boolean out, String value) {}

    private static final Map<String, Integer> SQL_TYPES = Map.ofEntries(
            entry("bit", Types.BIT), entry("smallint", Types.SMALLINT), entry("int", Types.INTEGER),
            entry("bigint", Types.BIGINT), entry("real", Types.REAL), entry("float", Types.DOUBLE),
            entry("char", Types.VARCHAR), entry("datetime", Types.TIMESTAMP), entry("date", Types.DATE),
            entry("numeric", Types.NUMERIC), entry("binary", Types.VARBINARY),
            entry("text", Types.LONGVARCHAR));
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS");
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    private static final BufferedReader IN =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private final boolean sybase;
    private final PooledConnection pooled;
    private Connection connection;

    private JdbcClient(String url, String user, String password) throws SQLException {
        sybase = url.startsWith("jdbc:jtds:sybase:");
        if (url.startsWith("jdbc:sqlserver:")) {
            var source = new com.microsoft.sqlserver.jdbc.SQLServerConnectionPoolDataSource();
            source.setURL(url);
            pooled = source.getPooledConnection(user, password);
            connection = pooled.getConnection();
        } else {
            // the pool of jTDS does nothing on the wire
            pooled = null;
            connection = DriverManager.getConnection(url, user, password);
        }
    }

    // --- requests ---

    private void call(String name, List<Param> params) throws SQLException {
        var marks = new StringJoiner(", ", "(", ")");
        params.forEach(param -> marks.add("?"));
        try (CallableStatement call = connection.prepareCall("{? = call " + name + (params.isEmpty() ? "" : marks) + "}")) {
            call.registerOutParameter(1, Types.INTEGER);
            for (int place = 0; place < params.size(); place++)
                give(call, place + 2, params.get(place));
            tellResults(call, call.execute());
            report("status", number(call.getObject(1)));
            var outputs = new StringJoiner(", ", "[", "]");
            for (int place = 0; place < params.size(); place++) {
                Param param = params.get(place);
                if (param.out)
                    outputs.add(plain(param.name.isEmpty() ? call.getObject(place + 2) : call.getObject(param.name)));
            }
            report("output", outputs.toString());
        }
    }

    private void give(CallableStatement call, int place, Param param) throws SQLException {
        int type = type(param);
        if (param.name.isEmpty()) {
            if (param.out)
                call.registerOutParameter(place, type);
            else
                call.setObject(place, value(param), type);
        } else if (param.out) {
            call.registerOutParameter(param.name, type);
        } else {
            call.setObject(param.name, value(param), type);
        }
    }

    private void execute(String text, List<Param> params) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int place = 0; place < params.size(); place++) {
                Param param = params.get(place);
                statement.setObject(place + 1, value(param), type(param));
            }
            tellResults(statement, statement.execute());
        }
    }

    private void language(String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            tellResults(statement, statement.execute(text));
        }
    }

    private void abandon(String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery(text);
            rows.next();
            tellRow(rows);
        }
    }

    private void cancel(double seconds, String text) throws Exception {
        try (Statement statement = connection.createStatement()) {
            var canceller = new Thread(() -> {
                try {
                    Thread.sleep((long) (seconds * 1000));
                    statement.cancel();
                } catch (InterruptedException | SQLException error) {
                    throw new IllegalStateException(error);
                }
            });
            canceller.start();
            try {
                tellResults(statement, statement.execute(text));
            } finally {
                canceller.join();
            }
        }
    }

    private void timeout(int seconds, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(seconds);
            tellResults(statement, statement.execute(text));
        }
    }

    private void again() throws SQLException {
        connection.close();
        connection = pooled.getConnection();
    }

    /** ASE has no NULL bits, and jTDS would send 0. */
    private int type(Param param) {
        boolean isNullBit = param.value == null && param.type.equals("bit");
        return sybase && isNullBit ? Types.INTEGER : SQL_TYPES.get(param.type);
    }

    private static Object value(Param param) {
        if (param.value == null)
            return null;
        return switch (param.type) {
            case "bit" -> param.value.equals("1");
            case "smallint", "int" -> Integer.valueOf(param.value);
            case "bigint" -> Long.valueOf(param.value);
            case "real" -> Float.valueOf(param.value);
            case "float" -> Double.valueOf(param.value);
            case "datetime" -> Timestamp.valueOf(param.value);
            case "date" -> Date.valueOf(param.value);
            case "numeric" -> new BigDecimal(param.value);
            case "binary" -> HexFormat.of().parseHex(param.value);
            default -> param.value;
        };
    }

    // --- answers ---

    private static void report(String kind, String json) {
        OUT.println("{\"" + kind + "\": " + json + "}");
    }

    /** A warning has no severity. */
    private static void tellMessages(Statement statement) throws SQLException {
        for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning())
            report("message", "[" + warning.getErrorCode() + ", 0, " + text(warning.getMessage()) + "]");
        statement.clearWarnings();
    }

    private static void tellResults(Statement statement, boolean rowsCome) throws SQLException {
        while (rowsCome || statement.getUpdateCount() != -1) {
            if (rowsCome) {
                ResultSet rows = statement.getResultSet();
                var columns = new StringJoiner(", ", "[", "]");
                for (int place = 1; place <= rows.getMetaData().getColumnCount(); place++)
                    columns.add(text(rows.getMetaData().getColumnLabel(place)));
                report("row_columns", columns.toString());
                while (rows.next())
                    tellRow(rows);
            }
            tellMessages(statement);
            rowsCome = statement.getMoreResults();
        }
        tellMessages(statement);
    }

    private static void tellRow(ResultSet rows) throws SQLException {
        var values = new StringJoiner(", ", "[", "]");
        for (int place = 1; place <= rows.getMetaData().getColumnCount(); place++)
            values.add(plain(rows.getObject(place)));
        report("row", values.toString());
    }

    private static String number(Object value) {
        return value == null ? "null" : value.toString();
    }

    private static String plain(Object value) throws SQLException {
        if (value == null || value instanceof Number || value instanceof Boolean)
            return number(value);
        if (value instanceof Timestamp time)
            return text(TIME.format(time.toLocalDateTime()));
        if (value instanceof microsoft.sql.DateTimeOffset time)
            return text(TIME.format(time.getOffsetDateTime()));
        if (value instanceof Time time)
            return text(TIME.format(new Timestamp(time.getTime()).toLocalDateTime()));
        if (value instanceof byte[] bytes)
            return text(HexFormat.of().formatHex(bytes));
        if (value instanceof Blob bytes)
            return text(HexFormat.of().formatHex(bytes.getBytes(1, (int) bytes.length())));
        if (value instanceof Clob text)
            return text(text.getSubString(1, (int) text.length()));
        return text(value.toString());
    }

    private static String text(String value) {
        var quoted = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\')
                quoted.append('\\').append(c);
            else if (c < 0x20)
                quoted.append(String.format("\\u%04x", (int) c));
            else
                quoted.append(c);
        }
        return quoted.append('"').toString();
    }

    // --- the conversation ---

    private interface Action {
        void run() throws Exception;
    }

    private static void answering(Action action) throws Exception {
        try {
            action.run();
        } catch (SQLException error) {
            report("error", "[" + text(error.getClass().getName()) + ", " + error.getErrorCode() + ", "
                    + text(String.valueOf(error.getMessage())) + "]");
        }
        report("end", "\"results\"");
    }

    private static String[] fields() throws Exception {
        String line = IN.readLine();
        if (line == null)
            return null;
        String[] fields = line.split("\t", -1);
        for (int i = 0; i < fields.length; i++)
            fields[i] = fields[i].replace("\\\\", "\0").replace("\\t", "\t").replace("\\n", "\n").replace("\0", "\\");
        return fields;
    }

    private static List<Param> params() throws Exception {
        var params = new ArrayList<Param>();
        for (String[] line = fields(); !line[0].equals("go"); line = fields())
            params.add(new Param(line[1], line[2], line[3].equals("out"), line.length > 4 ? line[4] : null));
        return params;
    }

    private void obey(String[] request) throws Exception {
        switch (request[0]) {
            case "rpc" -> call(request[1], params());
            case "execute" -> execute(request[1], params());
            case "language" -> language(request[1]);
            case "begin" -> connection.setAutoCommit(false);
            case "commit" -> {
                connection.commit();
                connection.setAutoCommit(true);
            }
            case "rollback" -> {
                connection.rollback();
                connection.setAutoCommit(true);
            }
            case "again" -> again();
            case "abandon" -> abandon(request[1]);
            case "cancel" -> cancel(Double.parseDouble(request[1]), request[2]);
            case "timeout" -> timeout(Integer.parseInt(request[1]), request[2]);
            default -> throw new IllegalArgumentException(request[0]);
        }
    }

    public static void main(String[] words) throws Exception {
        String password = IN.readLine();
        var client = new JdbcClient[1];
        answering(() -> client[0] = new JdbcClient(words[0], words[1], password));
        if (client[0] == null)
            System.exit(1);
        for (String[] request = fields(); request != null; request = fields()) {
            String[] asked = request;
            answering(() -> client[0].obey(asked));
        }
        client[0].connection.close();
    }
}
