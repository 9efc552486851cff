/* tdsload: the load through the gateway, at TDS 5.0 or 7.4.
 *
 * ct-library logs in and makes the first calls of each line, which are recorded. The load sends these bytes
 * again with another seq_no and time and reads answers up to their last DONE: so the client costs a few
 * microseconds a call, and the server sees exactly what ct-library sends.
 */
#include "client.h"
#include "load_generator.h"
#include "request.h"

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DONE = 0xFD, DONEPROC = 0xFE, DONE_MORE = 1, DONE_ERROR = 2 };

/* The request of a call, and where the bytes of its seq_no and time are: packet headers may lie between. */
struct put {
  struct request request;
  size_t seq_no[4], time[8];
};

struct line {
  int fd, done_length;
  struct put *puts; /* of each table of the line and each set */
  int *indexes;     /* of tables in `puts` */
  unsigned char answer[65536];
  size_t arrived;
  unsigned char end[16]; /* the last bytes of the answer so far */
};

/* Sybase's datetime: days since 1900 and 1/300 s of the day, both little-endian as the host. */
static void datetime(int64_t microseconds, int32_t out[2]) {
  int64_t day = microseconds / 86400000000LL;
  out[0] = day + 25567;
  out[1] = (microseconds - day * 86400000000LL) * 3 / 10000;
}

static struct request record(struct client *client, const struct options *options, const struct call *call) {
  char name[80];
  snprintf(name, sizeof name, "put_%s%d", options->prefix, call->table);
  CS_COMMAND *command = call_new(client->connection, name);
  if (!command) errx(1, "ct_command failed");
  CS_INT seq_no = call->seq_no;
  int32_t time[2];
  datetime(call->time, time);
  client_parameter(command, "@seq_no", CS_INT_TYPE, &seq_no);
  client_parameter(command, "@time", CS_DATETIME_TYPE, time);
  for (int column = 0; column < options->columns; column++) {
    CS_REAL value = reading(call->table, call->set, column);
    snprintf(name, sizeof name, "@%s%d", options->column, column + 1);
    client_parameter(command, name, CS_REAL_TYPE, &value);
  }
  return client_record(client, command, NULL);
}

static void patch(struct put *put, const struct call *call) {
  int32_t time[2];
  unsigned char bytes[8];
  datetime(call->time, time);
  memcpy(bytes, &call->seq_no, 4);
  for (int i = 0; i < 4; i++) put->request.bytes[put->seq_no[i]] = bytes[i];
  memcpy(bytes, time, 8);
  for (int i = 0; i < 8; i++) put->request.bytes[put->time[i]] = bytes[i];
}

/* Two recordings that differ in the low bytes of seq_no and of the time's 1/300 s show where both are. */
static void locate(struct put *put, const struct call *call, const struct request *other,
                   const struct call *other_call) {
  size_t seq_no = request_difference(&put->request, other, 0);
  size_t ticks = request_difference(&put->request, other, seq_no + 4);
  for (int i = 0; i < 4; i++) put->seq_no[i] = request_offset(&put->request, seq_no + i);
  for (int i = 0; i < 8; i++) put->time[i] = request_offset(&put->request, ticks - 4 + i);
  /* the one patched into the other must equal the other */
  patch(put, other_call);
  if (memcmp(put->request.bytes, other->bytes, other->length)) errx(1, "a recorded request cannot be changed");
  patch(put, call);
}

struct line *line_open(const struct options *options, const int *tables, int count, int first, long *made) {
  struct line *line = calloc(1, sizeof *line);
  line->done_length = strcmp(options->version, "5.0") ? 13 : 9;
  line->puts = calloc((size_t)count * SETS, sizeof *line->puts);
  line->indexes = calloc(options->tables, sizeof *line->indexes);
  struct client client =
    client_login(options->host, options->port, options->user, options->password, options->version);
  for (int i = 0; i < count; i++) {
    line->indexes[tables[i]] = i;
    struct put *puts = line->puts + i * SETS;
    struct call call = {.table = tables[i], .seq_no = first, .time = unix_microseconds()}, other = call;
    puts[0].request = record(&client, options, &call);
    other.seq_no++;
    other.time += 1000000 / 300 + 1;
    struct request shifted = record(&client, options, &other);
    locate(&puts[0], &call, &shifted, &other);
    free(shifted.bytes);
    for (call.set = 1; call.set < SETS; call.set++) {
      call.seq_no = first + 1 + call.set;
      puts[call.set] = puts[0];
      puts[call.set].request = record(&client, options, &call);
    }
    *made += CALLS_OF_OPENING;
  }
  line->fd = client_leave(&client);
  return line;
}

int line_fd(const struct line *line) { return line->fd; }

void line_send(struct line *line, const struct call *calls, int count) {
  if (count != 1) errx(2, "-b: a TDS client has one call outstanding");
  struct put *put = &line->puts[line->indexes[calls->table] * SETS + calls->set];
  patch(put, calls);
  request_send(line->fd, &put->request);
}

/* Ends the program with the readable part of an answer. */
static void refused(const struct line *line, size_t length) {
  char text[400];
  size_t used = 0;
  for (size_t i = HEADER; i < length && used < sizeof text - 1; i++)
    if (isprint(line->answer[i])) text[used++] = line->answer[i];
  text[used] = 0;
  errx(1, "the gateway refused a call: %s", text);
}

/* An answer ends with the packet marked last, and that with DONE or DONEPROC. */
int line_answered(struct line *line) {
  ssize_t read = recv(line->fd, line->answer + line->arrived, sizeof line->answer - line->arrived, MSG_DONTWAIT);
  if (read == 0) errx(1, "the gateway closed a connection");
  if (read < 0 && errno != EAGAIN) err(1, "receiving from the gateway");
  if (read > 0) line->arrived += read;
  while (line->arrived >= HEADER) {
    size_t length = line->answer[2] << 8 | line->answer[3];
    if (line->arrived < length) return 0;
    int last = line->answer[1] & LAST;
    size_t body = length - HEADER, taken = body < sizeof line->end ? body : sizeof line->end;
    memmove(line->end, line->end + taken, sizeof line->end - taken);
    memcpy(line->end + sizeof line->end - taken, line->answer + length - taken, taken);
    const unsigned char *done = line->end + sizeof line->end - line->done_length;
    if (last && ((done[0] != DONE && done[0] != DONEPROC) || done[1] & (DONE_MORE | DONE_ERROR)))
      refused(line, length);
    line->arrived -= length;
    memmove(line->answer, line->answer + length, line->arrived);
    if (last) return 1;
  }
  return 0;
}
