/* pgload: the load straight to PostgreSQL, by libpq. With -b 1 each call is a transaction of its own; with more,
 * so many calls go as one pipeline under one Sync, which is one transaction. */
#include "load_generator.h"

#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PostgreSQL counts microseconds from 2000-01-01. */
static const int64_t EPOCH = 946684800000000LL;

struct line {
  PGconn *connection;
  int parameters, batch;
  const char **values;
  int *lengths, *formats;
  uint32_t *readings; /* of each table of the line and each set, in network order */
  int *places;        /* of tables in `readings` */
};

static char *put_statement(const struct options *options, int table) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  fprintf(out, "select ringlog.put_%s%d(row($1", options->prefix, table);
  for (int i = 2; i <= options->columns + 2; i++) fprintf(out, ",$%d", i);
  fprintf(out, ")::online.%s%d)", options->prefix, table);
  fclose(out);
  return text;
}

struct line *line_open(const struct options *options, const int *tables, int count, int first, long *made) {
  (void)first, (void)made;
  struct line *line = calloc(1, sizeof *line);
  char port[16];
  snprintf(port, sizeof port, "%d", options->port);
  const char *names[] = {"host", "port", "dbname", "user", "password", NULL};
  const char *values[] = {options->host, port, options->database, options->user, options->password, NULL};
  line->connection = PQconnectdbParams(names, values, 0);
  if (PQstatus(line->connection) != CONNECTION_OK) errx(1, "%s", PQerrorMessage(line->connection));
  line->parameters = options->columns + 2;
  line->values = calloc(line->parameters, sizeof *line->values);
  line->lengths = calloc(line->parameters, sizeof *line->lengths);
  line->formats = calloc(line->parameters, sizeof *line->formats);
  for (int i = 0; i < line->parameters; i++) line->lengths[i] = i == 1 ? 8 : 4, line->formats[i] = 1;
  line->readings = calloc((size_t)count * SETS * options->columns, sizeof *line->readings);
  line->places = calloc(options->tables, sizeof *line->places);
  uint32_t *next = line->readings;
  for (int i = 0; i < count; i++) {
    char *statement = put_statement(options, tables[i]), name[16];
    snprintf(name, sizeof name, "put%d", tables[i]);
    PGresult *result = PQprepare(line->connection, name, statement, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) errx(1, "%s", PQerrorMessage(line->connection));
    PQclear(result);
    free(statement);
    line->places[tables[i]] = i;
    for (int set = 0; set < SETS; set++)
      for (int column = 0; column < options->columns; column++) {
        float value = reading(tables[i], set, column);
        memcpy(next, &value, 4);
        *next = htonl(*next), next++;
      }
  }
  PQsetnonblocking(line->connection, 1);
  line->batch = options->batch;
  if (line->batch > 1) PQenterPipelineMode(line->connection);
  return line;
}

int line_fd(const struct line *line) { return PQsocket(line->connection); }

static void flush(PGconn *connection) {
  int left;
  while ((left = PQflush(connection)) > 0) {
    struct pollfd poller = {PQsocket(connection), POLLIN | POLLOUT, 0};
    poll(&poller, 1, -1);
    if (poller.revents & POLLIN && !PQconsumeInput(connection)) errx(1, "%s", PQerrorMessage(connection));
  }
  if (left < 0) errx(1, "%s", PQerrorMessage(connection));
}

void line_send(struct line *line, const struct call *calls, int count) {
  int columns = line->parameters - 2;
  for (int i = 0; i < count; i++) {
    uint32_t seq_no = htonl(calls[i].seq_no);
    uint64_t time = htobe64(calls[i].time - EPOCH);
    uint32_t *readings = line->readings + (line->places[calls[i].table] * SETS + calls[i].set) * (size_t)columns;
    char name[16];
    snprintf(name, sizeof name, "put%d", calls[i].table);
    line->values[0] = (const char *)&seq_no;
    line->values[1] = (const char *)&time;
    for (int column = 0; column < columns; column++) line->values[2 + column] = (const char *)&readings[column];
    if (!PQsendQueryPrepared(line->connection, name, line->parameters, line->values, line->lengths, line->formats, 1))
      errx(1, "%s", PQerrorMessage(line->connection));
  }
  if (line->batch > 1 && !PQpipelineSync(line->connection)) errx(1, "%s", PQerrorMessage(line->connection));
  flush(line->connection);
}

/* A single call ends with no further result, a pipeline with its Sync: both come after the commit. */
int line_answered(struct line *line) {
  PGconn *connection = line->connection;
  if (!PQconsumeInput(connection)) errx(1, "%s", PQerrorMessage(connection));
  while (!PQisBusy(connection)) {
    PGresult *result = PQgetResult(connection);
    if (!result) {
      if (line->batch == 1) return 1;
      continue; /* between the results of a pipeline */
    }
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_SYNC)
      errx(1, "PostgreSQL refused a call: %s", PQresultErrorMessage(result));
    PQclear(result);
    if (status == PGRES_PIPELINE_SYNC) return 1;
  }
  return 0;
}
