/* A db-library client that takes part in the conversation of tests/clients/compat/conversation.py.
 *
 *   db_client SERVER USER        SERVER is a section of freetds.conf
 */
#include <sybfront.h>
#include <sybdb.h>
#include <inttypes.h>
#include <stdbool.h>
#include <unistd.h>
#include "../../../../gateway/programs/conversation.h"

#define MOST_PARAMS 300

static DBPROCESS *process;
static bool timed_out;

static void demand(RETCODE code, const char *what)
{
    if (code != SUCCEED)
        die(what);
}

/* --- answers --- */

static int on_message(DBPROCESS *from, DBINT number, int state, int severity, char *text, char *server, char *name,
                      int line)
{
    (void) from, (void) state, (void) server, (void) name, (void) line;
    if (severity > 10) {
        printf("{\"error\": [\"message handler\", %d, ", (int) number);
        put_text(text, strlen(text));
        printf("]}\n");
    } else {
        printf("{\"message\": [%d, %d, ", (int) number, severity);
        put_text(text, strlen(text));
        printf("]}\n");
    }
    return 0;
}

static int on_error(DBPROCESS *from, int severity, int number, int os_number, char *text, char *os_text)
{
    (void) from, (void) severity, (void) os_number, (void) os_text;
    /* a message that the handler has reported arrives again as SYBESMSG, a refused login also as SYBEFCON */
    if (number == SYBETIME) {
        printf("{\"error\": [\"error handler\", %d, ", number);
        put_text(text, strlen(text));
        printf("]}\n");
        timed_out = true;
        return INT_TIMEOUT;
    }
    return INT_CANCEL;
}

static void put_value(int type, const BYTE *value, DBINT length)
{
    static char digits[256];

    if (value == NULL) {
        printf("null");
        return;
    }
    switch (type) {
    case SYBBIT:
    case SYBINT1: printf("%u", *value); return;
    case SYBINT2: printf("%d", *(const int16_t *) value); return;
    case SYBINT4: printf("%d", *(const int32_t *) value); return;
    case SYBINT8: printf("%" PRId64, *(const int64_t *) value); return;
    case SYBREAL: printf("%.9g", *(const float *) value); return;
    case SYBFLT8: printf("%.17g", *(const double *) value); return;
    case SYBCHAR:
    case SYBVARCHAR:
    case SYBTEXT: put_text((const char *) value, (size_t) length); return;
    case SYBDATETIME:
    case SYBDATETIME4:
    case SYBDATE:
    case SYBTIME:
    case SYBMSDATE:
    case SYBMSTIME:
    case SYBMSDATETIME2:
    case SYBMSDATETIMEOFFSET:
    case SYBBIGTIME:
    case SYBBIGDATETIME: {
        DBDATEREC2 time;
        demand(dbanydatecrack(process, &time, type, value), "a time it cannot take apart");
        printf("\"%04d-%02d-%02d %02d:%02d:%02d.%06d\"", time.dateyear, time.datemonth + 1, time.datedmonth,
               time.datehour, time.dateminute, time.datesecond, time.datensecond / 1000);
        return;
    }
    default: {
        /* a length of -1 does not pad */
        if ((size_t) length * 2 >= sizeof digits
            || dbconvert(process, type, value, length, SYBCHAR, (BYTE *) digits, -1) < 0)
            die("a value that has no text");
        put_text(digits, strlen(digits));
        return;
    }
    }
}

/* Reads all results of the request; leaves them when `most` rows have come, unless that is -1. */
static void put_results(int most)
{
    RETCODE code;
    STATUS row;

    while ((code = dbresults(process)) == SUCCEED) {
        int columns = dbnumcols(process);
        if (columns > 0) {
            printf("{\"row_columns\": [");
            for (int i = 1; i <= columns; i++) {
                printf(i > 1 ? ", " : "");
                put_text(dbcolname(process, i), strlen(dbcolname(process, i)));
            }
            printf("]}\n");
        }
        while ((row = dbnextrow(process)) != NO_MORE_ROWS && row != FAIL) {
            printf("{\"row\": [");
            for (int i = 1; i <= columns; i++) {
                printf(i > 1 ? ", " : "");
                put_value(dbcoltype(process, i), dbdata(process, i), dbdatlen(process, i));
            }
            printf("]}\n");
            if (--most == 0) {
                demand(dbcancel(process), "cancelling");
                return;
            }
        }
    }
    if (dbhasretstat(process))
        printf("{\"status\": %d}\n", (int) dbretstatus(process));
    if (dbnumrets(process) > 0) {
        printf("{\"output\": [");
        for (int i = 1; i <= dbnumrets(process); i++) {
            printf(i > 1 ? ", " : "");
            put_value(dbrettype(process, i), dbretdata(process, i), dbretlen(process, i));
        }
        printf("]}\n");
    }
}

/* --- requests --- */

static const struct type { const char *name; int type; } types[] = {
    { "bit", SYBBIT }, { "smallint", SYBINT2 }, { "int", SYBINT4 }, { "bigint", SYBINT8 }, { "real", SYBREAL },
    { "float", SYBFLT8 }, { "char", SYBVARCHAR }, { "datetime", SYBDATETIME }, { "date", SYBDATETIME },
    { "numeric", SYBNUMERIC }, { "binary", SYBVARBINARY }, { "text", SYBTEXT },
};

static void add_param(char *rest)
{
    /* dbrpcparam keeps the pointers until dbrpcsend */
    static char names[MOST_PARAMS][64];
    static BYTE values[MOST_PARAMS][8000];
    static int next;
    int place = next++ % MOST_PARAMS;
    char *type_name = field(&rest), *name = field(&rest), *direction = field(&rest), *text = field(&rest);
    BYTE status = strcmp(direction, "out") == 0 ? DBRPCRETURN : 0;
    size_t i;
    int type, length = 0, most = -1;

    for (i = 0; i < sizeof types / sizeof *types && strcmp(types[i].name, type_name) != 0; i++)
        ;
    if (i == sizeof types / sizeof *types)
        die("a parameter of a type it does not know");
    type = types[i].type;
    snprintf(names[place], sizeof names[place], "%s", name);
    if (text != NULL) {
        length = (int) strlen(text);
        DBTYPEINFO digits = { .precision = 18, .scale = 4 };
        /* a length of -1 does not pad */
        int written = dbconvert_ps(process, SYBCHAR, (BYTE *) text, length, type, values[place], -1, &digits);
        if (written < 0 || (size_t) length >= sizeof values[place])
            die("a value of another type");
        length = type == SYBVARCHAR || type == SYBTEXT ? length : type == SYBVARBINARY || type == SYBNUMERIC ? written : -1;
    }
    if (type == SYBVARCHAR && status == DBRPCRETURN)
        most = 255;
    demand(dbrpcparam(process, *name ? names[place] : NULL, status, type, most, length, text ? values[place] : NULL),
           "a parameter");
}

static void execute(const char *text)
{
    demand(dbcmd(process, text), "a command");
    if (dbsqlexec(process) == SUCCEED)
        put_results(-1);
}

static bool sent(const char *text)
{
    demand(dbcmd(process, text), "a command");
    return dbsqlsend(process) == SUCCEED;
}

static void obey(char *line)
{
    char *rest = line, *request = field(&rest);

    if (strcmp(request, "rpc") == 0) {
        demand(dbrpcinit(process, field(&rest), 0), "a call");
        return;
    } else if (strcmp(request, "param") == 0) {
        add_param(rest);
        return;
    } else if (strcmp(request, "go") == 0) {
        if (dbrpcsend(process) == SUCCEED && dbsqlok(process) == SUCCEED)
            put_results(-1);
    } else if (strcmp(request, "language") == 0) {
        execute(field(&rest));
    } else if (strcmp(request, "begin") == 0) {
        execute("begin tran");
    } else if (strcmp(request, "commit") == 0) {
        execute("commit tran");
    } else if (strcmp(request, "rollback") == 0) {
        execute("rollback tran");
    } else if (strcmp(request, "abandon") == 0) {
        if (sent(field(&rest)) && dbsqlok(process) == SUCCEED)
            put_results(1);
    } else if (strcmp(request, "cancel") == 0) {
        double seconds = atof(field(&rest));
        if (!sent(field(&rest)))
            die("sending");
        usleep((useconds_t) (seconds * 1e6));
        demand(dbcancel(process), "cancelling");
    } else if (strcmp(request, "timeout") == 0) {
        demand(dbsettime(atoi(field(&rest))), "the time");
        if (sent(field(&rest)) && dbsqlok(process) == SUCCEED)
            put_results(-1);
        demand(dbsettime(0), "the time");
        if (timed_out)
            demand(dbcancel(process), "cancelling");
        timed_out = false;
    } else
        die("a request it does not know");
    printf("{\"end\": \"results\"}\n");
}

int main(int count, char **words)
{
    LOGINREC *login;
    char *line;

    if (count != 3)
        die("usage: db_client SERVER USER");
    setvbuf(stdout, NULL, _IOLBF, 0);
    demand(dbinit(), "dbinit");
    dberrhandle(on_error);
    dbmsghandle(on_message);
    login = dblogin();
    if ((line = next_line()) == NULL)
        die("no password");
    DBSETLUSER(login, words[2]);
    DBSETLPWD(login, line);
    DBSETLAPP(login, "db_client");
    process = dbopen(login, words[1]);
    printf("{\"end\": \"login\"}\n");
    if (process == NULL)
        return 1;
    while ((line = next_line()) != NULL)
        obey(line);
    dbexit();
    return 0;
}
