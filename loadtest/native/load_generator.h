/* A load of put_<table> calls over many connections: the common part of both clients, libpq and TDS.
 *
 * load_generator.c has main(), the loop and the figures; pgload.c and tdsload.c each define a line. A line is a
 * logged-in connection with one transaction outstanding at a time. Any error ends the program: a
 * load with failing calls measures nothing.
 */
#ifndef LOAD_GENERATOR_H
#define LOAD_GENERATOR_H

#include <stddef.h>
#include <stdint.h>

struct options {
  const char *host;
  int port;
  const char *user;
  char password[128];   /* from standard input, never on the command line */
  const char *database; /* PostgreSQL's; unused by TDS */
  const char *version;  /* of TDS: 5.0 or 7.4; unused by libpq */
  const char *prefix;   /* tables are <prefix>0, <prefix>1, ... */
  const char *column;   /* data columns are <column>1, <column>2, ... */
  int columns, tables, rows, first;
  int connections, threads, batch;
  double warm, seconds;
  int marked; /* the measurement begins when a line arrives on standard input after `begin` was printed */
  const unsigned char *points; /* a column is a waveform of these bytes, whose first point is the call's number; or NULL */
  size_t points_length;
  int doubles; /* points are of 8 bytes, not of 4 */
  double rate; /* calls a second on each connection; 0: each answer is followed by the next call at once */
};

/* One call: row seq_no of a table, at a time in microseconds since 1970, with one of SETS sets of values. `number` counts
 * the calls of a table. */
struct call {
  int table, seq_no, set;
  long number;
  int64_t time;
};

enum { SETS = 8, CALLS_OF_OPENING = SETS + 1, FRAMES_OF_OPENING = 2 };

/* The value of a data column (from 0) in a set: any of 24 bits, so that nothing compresses, and the same in
 * loadtest/experiment/verification.py. */
float reading(int table, int set, int column);

struct line;

/* Logs in and prepares calls of these tables. It may call each CALLS_OF_OPENING times, for the rows from `first`
 * on, and adds such calls to `made`; of waveforms FRAMES_OF_OPENING times the first table. */
struct line *line_open(const struct options *options, const int *tables, int count, int first, long *made);
int line_fd(const struct line *line);
/* Sends calls, which are one transaction. */
void line_send(struct line *line, const struct call *calls, int count);
/* Reads the arrived bytes; returns whether the transaction has been acknowledged. */
int line_answered(struct line *line);

int64_t unix_microseconds(void);

#endif
