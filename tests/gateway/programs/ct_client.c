/* A ct-library client that runs the requests of its standard input and prints the answers.
 *
 *   ct_client SERVER USER        SERVER is a section of freetds.conf
 *
 * The first line of input is the password. Every other line is a request, its fields separated by tabs
 * (\t, \n and \\ stand for tab, newline and backslash in them):
 *
 *   rpc NAME                         begins a call
 *   param TYPE NAME DIRECTION VALUE  adds a parameter; NAME may be empty, DIRECTION is in or out, no VALUE is NULL
 *   go                               sends the call
 *   language TEXT                    sends text
 *   cancel MILLISECONDS TEXT         sends text and cancels it after a while
 *   send TEXT                        sends text; nothing but cancel_sent may follow
 *   cancel_sent                      cancels it
 *   cancel_rows ROWS TEXT            sends text and cancels it after some rows
 *   prepare ID TEXT                  prepares a dynamic statement
 *   describe WHAT ID                 asks what it takes (in) or gives (out)
 *   execute ID                       begins its execution: params and go follow
 *   close ID                         deallocates it
 *
 * Every answer ends with a line {"end": …}; the lines before it are what ct_results and the message callbacks
 * gave, each an object of JSON with one member. Values are the client library's own, bit by bit: dates and
 * times are their integers separated by blanks, money is its integer, binaries are hexadecimal.
 */
#include <ctpublic.h>
#include <ctype.h>
#include <inttypes.h>
#include <unistd.h>
#include "conversation.h"

#define MOST_COLUMNS 1700
#define LONGEST_VALUE (1 << 20)

static CS_CONTEXT *context;
static CS_CONNECTION *connection;
static CS_COMMAND *command;

static void demand(CS_RETCODE code, const char *what)
{
    if (code != CS_SUCCEED)
        die(what);
}

/* --- answers --- */

static CS_RETCODE on_server_message(CS_CONTEXT *ctx, CS_CONNECTION *con, CS_SERVERMSG *message)
{
    (void) ctx, (void) con;
    printf("{\"message\": [%d, %d, ", (int) message->msgnumber, (int) message->severity);
    put_text(message->text, strlen(message->text));
    printf("]}\n");
    return CS_SUCCEED;
}

static CS_RETCODE on_client_message(CS_CONTEXT *ctx, CS_CONNECTION *con, CS_CLIENTMSG *message)
{
    (void) ctx, (void) con;
    printf("{\"client_message\": ");
    put_text(message->msgstring, strlen(message->msgstring));
    printf("}\n");
    return CS_SUCCEED;
}

static CS_RETCODE on_library_message(CS_CONTEXT *ctx, CS_CLIENTMSG *message)
{
    return on_client_message(ctx, NULL, message);
}

static void put_value(const CS_DATAFMT *format, const void *value, CS_INT length, CS_SMALLINT indicator)
{
    static char digits[128];
    const int32_t *words = value;
    const unsigned char *bytes = value;

    if (indicator == -1) {
        printf("null");
        return;
    }
    switch (format->datatype) {
    case CS_BIT_TYPE:
    case CS_TINYINT_TYPE: printf("\"%u\"", *bytes); return;
    case CS_SMALLINT_TYPE: printf("\"%d\"", *(const CS_SMALLINT *) value); return;
    case CS_INT_TYPE: printf("\"%d\"", *(const CS_INT *) value); return;
    case CS_BIGINT_TYPE: printf("\"%" PRId64 "\"", (int64_t) *(const CS_BIGINT *) value); return;
    case CS_REAL_TYPE: printf("\"%.9g\"", *(const CS_REAL *) value); return;
    case CS_FLOAT_TYPE: printf("\"%.17g\"", *(const CS_FLOAT *) value); return;
    case CS_MONEY_TYPE: {
        const CS_MONEY *money = value;
        printf("\"%" PRId64 "\"", (int64_t) ((uint64_t) money->mnyhigh << 32 | (uint32_t) money->mnylow));
        return;
    }
    case CS_DATETIME_TYPE: printf("\"%d %d\"", words[0], words[1]); return;
    case CS_DATETIME4_TYPE: {
        const CS_DATETIME4 *time = value;
        printf("\"%u %u\"", time->days, time->minutes);
        return;
    }
    case CS_MONEY4_TYPE:
    case CS_DATE_TYPE:
    case CS_TIME_TYPE: printf("\"%d\"", words[0]); return;
    case CS_BIGDATETIME_TYPE:
    case CS_BIGTIME_TYPE: printf("\"%" PRIu64 "\"", *(const uint64_t *) value); return;
    case CS_UNIQUE_TYPE:
    case CS_NUMERIC_TYPE:
    case CS_DECIMAL_TYPE: {
        CS_DATAFMT from = *format, to = { .datatype = CS_CHAR_TYPE, .maxlength = sizeof digits };
        CS_INT written;
        demand(cs_convert(context, &from, (void *) value, &to, digits, &written), "a value that has no text");
        put_text(digits, (size_t) written);
        return;
    }
    case CS_BINARY_TYPE:
    case CS_LONGBINARY_TYPE:
    case CS_IMAGE_TYPE:
    case CS_VARBINARY_TYPE:
        putchar('"');
        for (CS_INT i = 0; i < length; i++)
            printf("%02x", bytes[i]);
        putchar('"');
        return;
    case CS_CHAR_TYPE:
    case CS_LONGCHAR_TYPE:
    case CS_TEXT_TYPE: put_text(value, (size_t) length); return;
    default: fprintf(stderr, "type %d: ", (int) format->datatype); die("a result of a type it does not know");
    }
}

/* Fetches the rows of a result; stops when `most` of them have come. The number of rows. */
static CS_INT put_rows(const char *kind, CS_INT most)
{
    static CS_DATAFMT formats[MOST_COLUMNS];
    static CS_INT lengths[MOST_COLUMNS];
    static CS_SMALLINT indicators[MOST_COLUMNS];
    static char *values[MOST_COLUMNS];
    CS_INT columns, fetched, rows = 0;
    CS_RETCODE code;

    demand(ct_res_info(command, CS_NUMDATA, &columns, CS_UNUSED, NULL), "the number of columns");
    printf("{\"%s_columns\": [", kind);
    for (CS_INT i = 0; i < columns; i++) {
        demand(ct_describe(command, i + 1, &formats[i]), "the description of a column");
        printf("%s[", i ? ", " : "");
        put_text(formats[i].name, strlen(formats[i].name));
        printf(", %d, %d, %d, %d]", (int) formats[i].datatype, (int) formats[i].maxlength,
               (int) formats[i].precision, (int) formats[i].scale);
        /* the announced length of a text is no limit */
        if (formats[i].maxlength <= 0 || formats[i].maxlength > 8000)
            formats[i].maxlength = LONGEST_VALUE;
        formats[i].maxlength += 64;
        formats[i].format = CS_FMT_UNUSED;
        formats[i].count = 1;
        values[i] = malloc((size_t) formats[i].maxlength);
        demand(ct_bind(command, i + 1, &formats[i], values[i], &lengths[i], &indicators[i]), "binding");
    }
    printf("]}\n");
    while (rows != most && (code = ct_fetch(command, CS_UNUSED, CS_UNUSED, CS_UNUSED, &fetched)) == CS_SUCCEED) {
        rows++;
        printf("{\"%s\": [", kind);
        for (CS_INT i = 0; i < columns; i++) {
            printf(i ? ", " : "");
            put_value(&formats[i], values[i], lengths[i], indicators[i]);
        }
        printf("]}\n");
    }
    if (rows != most && code != CS_END_DATA)
        printf("{\"broken\": \"fetch gave %d\"}\n", (int) code);
    for (CS_INT i = 0; i < columns; i++)
        free(values[i]);
    return rows;
}

/* What a dynamic statement takes or gives. */
static void put_description(void)
{
    CS_INT columns;
    CS_DATAFMT format;

    demand(ct_res_info(command, CS_NUMDATA, &columns, CS_UNUSED, NULL), "the number of columns");
    printf("{\"description\": [");
    for (CS_INT i = 0; i < columns; i++) {
        demand(ct_describe(command, i + 1, &format), "the description of a column");
        printf("%s[", i ? ", " : "");
        put_text(format.name, strlen(format.name));
        printf(", %d]", (int) format.datatype);
    }
    printf("]}\n");
}

/* Cancels the sent request; the command can be used again. */
static void cancel(void)
{
    CS_INT kind;

    demand(ct_cancel(NULL, command, CS_CANCEL_ALL), "cancelling");
    if (ct_results(command, &kind) != CS_CANCELED)
        die("a cancelled command that has results");
    printf("{\"end\": \"cancelled\"}\n");
}

/* Reads all results of the command. Cancels when `most` rows have come, unless that is -1. */
static void put_results(CS_INT most)
{
    CS_INT kind, status, count, fetched;
    CS_RETCODE code;

    while ((code = ct_results(command, &kind)) == CS_SUCCEED) {
        switch (kind) {
        case CS_ROW_RESULT:
            if (put_rows("row", most) == most) {
                cancel();
                return;
            }
            break;
        case CS_PARAM_RESULT: put_rows("output", -1); break;
        case CS_DESCRIBE_RESULT: put_description(); break;
        case CS_STATUS_RESULT: {
            CS_DATAFMT format = { .datatype = CS_INT_TYPE, .maxlength = sizeof status, .count = 1 };
            demand(ct_bind(command, 1, &format, &status, NULL, NULL), "binding the status");
            while (ct_fetch(command, CS_UNUSED, CS_UNUSED, CS_UNUSED, &fetched) == CS_SUCCEED)
                printf("{\"status\": %d}\n", (int) status);
            break;
        }
        case CS_CMD_DONE:
            demand(ct_res_info(command, CS_ROW_COUNT, &count, CS_UNUSED, NULL), "the row count");
            printf("{\"count\": %d}\n", (int) count);
            break;
        case CS_CMD_FAIL: printf("{\"failed\": true}\n"); break;
        default: break;
        }
    }
    printf("{\"end\": \"%s\"}\n",
           code == CS_END_RESULTS ? "results" : code == CS_CANCELED ? "cancelled" : "connection lost");
    if (code == CS_FAIL && ct_cancel(NULL, command, CS_CANCEL_ALL) != CS_SUCCEED) {
        fflush(stdout);
        exit(1);
    }
}

/* --- requests --- */

static const struct type { const char *name; CS_INT type; } types[] = {
    { "bit", CS_BIT_TYPE }, { "tinyint", CS_TINYINT_TYPE }, { "smallint", CS_SMALLINT_TYPE },
    { "int", CS_INT_TYPE }, { "bigint", CS_BIGINT_TYPE }, { "real", CS_REAL_TYPE }, { "float", CS_FLOAT_TYPE },
    { "money", CS_MONEY_TYPE }, { "smallmoney", CS_MONEY4_TYPE }, { "datetime", CS_DATETIME_TYPE },
    { "smalldatetime", CS_DATETIME4_TYPE }, { "date", CS_DATE_TYPE }, { "time", CS_TIME_TYPE },
    { "bigdatetime", CS_BIGDATETIME_TYPE }, { "bigtime", CS_BIGTIME_TYPE }, { "numeric", CS_NUMERIC_TYPE },
    { "decimal", CS_DECIMAL_TYPE }, { "char", CS_CHAR_TYPE }, { "longchar", CS_LONGCHAR_TYPE },
    { "text", CS_TEXT_TYPE }, { "binary", CS_BINARY_TYPE }, { "longbinary", CS_LONGBINARY_TYPE },
    { "image", CS_IMAGE_TYPE },
};

/* Puts the value that `text` writes into `out`, in the client library's form. Its length. */
static CS_INT read_value(CS_DATAFMT *format, const char *text, void *out)
{
    int64_t first = strtoll(text, NULL, 10), second = 0;
    const char *blank = strchr(text, ' ');

    if (blank != NULL)
        second = strtoll(blank, NULL, 10);
    switch (format->datatype) {
    case CS_BIT_TYPE:
    case CS_TINYINT_TYPE: *(CS_TINYINT *) out = (CS_TINYINT) first; return 1;
    case CS_SMALLINT_TYPE: *(CS_SMALLINT *) out = (CS_SMALLINT) first; return 2;
    case CS_INT_TYPE:
    case CS_MONEY4_TYPE:
    case CS_DATE_TYPE:
    case CS_TIME_TYPE: *(CS_INT *) out = (CS_INT) first; return 4;
    case CS_BIGINT_TYPE: *(CS_BIGINT *) out = first; return 8;
    case CS_BIGDATETIME_TYPE:
    case CS_BIGTIME_TYPE: *(uint64_t *) out = strtoull(text, NULL, 10); return 8;
    case CS_REAL_TYPE: *(CS_REAL *) out = strtof(text, NULL); return 4;
    case CS_FLOAT_TYPE: *(CS_FLOAT *) out = strtod(text, NULL); return 8;
    case CS_MONEY_TYPE: {
        CS_MONEY money = { .mnyhigh = (CS_INT) (first >> 32), .mnylow = (CS_UINT) first };
        memcpy(out, &money, sizeof money);
        return sizeof money;
    }
    case CS_DATETIME_TYPE: {
        CS_DATETIME time = { .dtdays = (CS_INT) first, .dttime = (CS_INT) second };
        memcpy(out, &time, sizeof time);
        return sizeof time;
    }
    case CS_DATETIME4_TYPE: {
        CS_DATETIME4 time = { .days = (CS_USHORT) first, .minutes = (CS_USHORT) second };
        memcpy(out, &time, sizeof time);
        return sizeof time;
    }
    case CS_NUMERIC_TYPE:
    case CS_DECIMAL_TYPE: {
        CS_DATAFMT from = { .datatype = CS_CHAR_TYPE, .maxlength = (CS_INT) strlen(text) };
        CS_INT written;
        demand(cs_convert(context, &from, (void *) text, format, out, &written), "a numeric that is none");
        return written;
    }
    case CS_BINARY_TYPE:
    case CS_LONGBINARY_TYPE:
    case CS_IMAGE_TYPE: {
        CS_INT length = 0;
        for (unsigned byte; sscanf(text, "%2x", &byte) == 1; text += 2)
            ((unsigned char *) out)[length++] = (unsigned char) byte;
        return length;
    }
    default: strcpy(out, text); return (CS_INT) strlen(text);
    }
}

/* TYPE is a name, with the most bytes or digits and decimals after colons: char:30, numeric:18:4. */
static void add_param(char *rest)
{
    static char value[LONGEST_LINE];
    CS_DATAFMT format = { .maxlength = 255 };
    char *type = field(&rest), *name = field(&rest), *direction = field(&rest), *text = field(&rest);
    char *colon = strchr(type, ':');
    CS_INT length = 0;
    size_t i;

    if (colon != NULL)
        *colon++ = '\0';
    for (i = 0; i < sizeof types / sizeof *types && strcmp(types[i].name, type) != 0; i++)
        ;
    if (i == sizeof types / sizeof *types)
        die("a parameter of a type it does not know");
    format.datatype = types[i].type;
    if (format.datatype == CS_NUMERIC_TYPE || format.datatype == CS_DECIMAL_TYPE) {
        format.precision = atoi(colon);
        format.scale = atoi(strchr(colon, ':') + 1);
        format.maxlength = sizeof(CS_NUMERIC);
    } else if (colon != NULL)
        format.maxlength = atoi(colon);
    snprintf(format.name, sizeof format.name, "%s", name);
    format.namelen = *name == '\0' ? 0 : CS_NULLTERM;
    format.status = strcmp(direction, "out") == 0 ? CS_RETURN : CS_INPUTVALUE;
    if (text != NULL)
        length = read_value(&format, text, value);
    demand(ct_param(command, &format, text ? value : NULL, length, text ? 0 : -1), "a parameter");
}

static void send_language(char *text)
{
    demand(ct_command(command, CS_LANG_CMD, text, CS_NULLTERM, CS_UNUSED), "a command");
    demand(ct_send(command), "sending");
}

static void send_dynamic(CS_INT what, char *id, char *text)
{
    CS_INT length = text == NULL ? CS_UNUSED : CS_NULLTERM;

    demand(ct_dynamic(command, what, id, CS_NULLTERM, text, length), "a dynamic statement");
    if (what == CS_EXECUTE)
        return;
    demand(ct_send(command), "sending");
    put_results(-1);
}

static void obey(char *line)
{
    char *rest = line, *request = field(&rest);

    if (strcmp(request, "rpc") == 0) {
        demand(ct_command(command, CS_RPC_CMD, field(&rest), CS_NULLTERM, CS_UNUSED), "a call");
    } else if (strcmp(request, "param") == 0) {
        add_param(rest);
    } else if (strcmp(request, "go") == 0) {
        demand(ct_send(command), "sending");
        put_results(-1);
    } else if (strcmp(request, "language") == 0) {
        send_language(field(&rest));
        put_results(-1);
    } else if (strcmp(request, "cancel") == 0) {
        int pause = atoi(field(&rest));
        send_language(field(&rest));
        usleep((useconds_t) pause * 1000);
        cancel();
    } else if (strcmp(request, "send") == 0) {
        send_language(field(&rest));
    } else if (strcmp(request, "cancel_sent") == 0) {
        cancel();
    } else if (strcmp(request, "cancel_rows") == 0) {
        int rows = atoi(field(&rest));
        send_language(field(&rest));
        put_results(rows);
    } else if (strcmp(request, "prepare") == 0) {
        char *id = field(&rest);
        send_dynamic(CS_PREPARE, id, field(&rest));
    } else if (strcmp(request, "describe") == 0) {
        CS_INT what = strcmp(field(&rest), "in") == 0 ? CS_DESCRIBE_INPUT : CS_DESCRIBE_OUTPUT;
        send_dynamic(what, field(&rest), NULL);
    } else if (strcmp(request, "execute") == 0) {
        send_dynamic(CS_EXECUTE, field(&rest), NULL);
    } else if (strcmp(request, "close") == 0) {
        send_dynamic(CS_DEALLOC, field(&rest), NULL);
    } else
        die("a request it does not know");
}

int main(int count, char **words)
{
    CS_CONTEXT *made;
    char *line;

    if (count != 3)
        die("usage: ct_client SERVER USER");
    setvbuf(stdout, NULL, _IOLBF, 0);
    demand(cs_ctx_alloc(CS_VERSION_100, &made), "cs_ctx_alloc");
    context = made;
    demand(ct_init(context, CS_VERSION_100), "ct_init");
    demand(cs_config(context, CS_SET, CS_MESSAGE_CB, (CS_VOID *) on_library_message, CS_UNUSED, NULL), "cs_config");
    demand(ct_callback(context, NULL, CS_SET, CS_CLIENTMSG_CB, (CS_VOID *) on_client_message), "ct_callback");
    demand(ct_callback(context, NULL, CS_SET, CS_SERVERMSG_CB, (CS_VOID *) on_server_message), "ct_callback");
    demand(ct_con_alloc(context, &connection), "ct_con_alloc");
    if ((line = next_line()) == NULL)
        die("no password");
    demand(ct_con_props(connection, CS_SET, CS_USERNAME, words[2], CS_NULLTERM, NULL), "the user name");
    demand(ct_con_props(connection, CS_SET, CS_PASSWORD, line, CS_NULLTERM, NULL), "the password");
    demand(ct_con_props(connection, CS_SET, CS_APPNAME, "ct_client", CS_NULLTERM, NULL), "the program's name");
    if (ct_connect(connection, words[1], CS_NULLTERM) != CS_SUCCEED) {
        printf("{\"end\": \"no login\"}\n");
        return 1;
    }
    demand(ct_cmd_alloc(connection, &command), "ct_cmd_alloc");
    printf("{\"end\": \"login\"}\n");
    while ((line = next_line()) != NULL)
        obey(line);
    ct_cmd_drop(command);
    ct_close(connection, CS_UNUSED);
    return 0;
}
