/* tdsload: the load through the gateway, at TDS 5.0 or 7.4.
 *
 * ct-library logs in and makes the first calls of each line, which are recorded. The load sends these bytes
 * again with another seq_no and time and reads answers up to their last DONE: so the client costs a few
 * microseconds a call, and the server sees exactly what ct-library sends.
 */
#define _GNU_SOURCE /* memmem */
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

/* The calls of waveforms: the message of the first table's, of which the name of the procedure and these places change. */
struct frames {
  int columns, first_table, point;
  struct request like, message, sent;
  const char *prefix;
  size_t name, name_length, seq_no, time, *points;
};

struct line {
  int fd, done_length;
  struct frames frames;
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

static void first_point(unsigned char *at, int doubles, long number) {
  double real = number;
  int32_t whole = number;
  memcpy(at, doubles ? (void *)&real : (void *)&whole, doubles ? sizeof real : sizeof whole);
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
  unsigned char *points = NULL;
  if (options->points) {
    points = malloc(options->points_length);
    memcpy(points, options->points, options->points_length);
    first_point(points, options->doubles, call->number);
  }
  for (int column = 0; column < options->columns; column++) {
    CS_REAL value = reading(call->table, call->set, column);
    snprintf(name, sizeof name, "@%s%d", options->column, column + 1);
    if (!points)
      client_parameter(command, name, CS_REAL_TYPE, &value);
    else if (!call_binary(command, name, options->version, points, options->points_length))
      errx(1, "%s cannot be sent", name);
  }
  free(points);
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

/* The name of a table's procedure as 7.4 sends it: the number of its characters, and these in two bytes each. */
static size_t procedure_name(const char *prefix, int table, unsigned char out[170]) {
  char name[80];
  size_t count = snprintf(name, sizeof name, "put_%s%d", prefix, table);
  out[0] = count, out[1] = 0;
  for (size_t i = 0; i < count; i++) out[2 + 2 * i] = name[i], out[3 + 2 * i] = 0;
  return 2 + 2 * count;
}

/* Two recorded calls that differ in seq_no, time and the number of the frame show where these are. */
static void open_frames(struct frames *frames, struct client *client, const struct options *options, int table, int first) {
  unsigned char name[170];
  struct call call = {.table = table, .seq_no = first, .time = unix_microseconds()};
  frames->columns = options->columns, frames->first_table = table, frames->prefix = options->prefix;
  frames->point = options->doubles ? 8 : 4;
  frames->like = record(client, options, &call);
  call.seq_no++, call.number++, call.time += 1000000 / 300 + 1;
  struct request other = record(client, options, &call);
  frames->message = request_message(&frames->like);
  frames->name_length = procedure_name(options->prefix, table, name);
  unsigned char *found = memmem(frames->message.bytes, frames->message.length, name, frames->name_length);
  if (!found) errx(1, "a recorded call has no name: waveforms are sent at TDS 7.4");
  frames->name = found - frames->message.bytes;
  frames->seq_no = request_difference(&frames->like, &other, 0);
  size_t place = request_difference(&frames->like, &other, frames->seq_no + 4);
  frames->time = place - 4;
  frames->points = calloc(options->columns, sizeof *frames->points);
  place += 4;
  for (int column = 0; column < options->columns; column++) {
    /* of 1.0 the last two bytes are other ones than of 0.0, of 1 the first */
    frames->points[column] = request_difference(&frames->like, &other, place) - (options->doubles ? 6 : 0);
    place = frames->points[column] + options->points_length;
  }
  /* names may be longer, and each packet has a header */
  frames->sent.bytes = malloc(2 * frames->message.length + sizeof name);
  if (!frames->sent.bytes) err(1, "no memory");
  free(other.bytes);
}

static void send_frames(struct line *line, const struct call *call) {
  struct frames *frames = &line->frames;
  unsigned char name[170], *message = frames->message.bytes;
  int32_t time[2];
  datetime(call->time, time);
  memcpy(message + frames->seq_no, &call->seq_no, 4);
  memcpy(message + frames->time, time, 8);
  long number = call->number + (call->table == frames->first_table ? FRAMES_OF_OPENING : 0);
  for (int column = 0; column < frames->columns; column++)
    first_point(message + frames->points[column], frames->point == 8, number);
  size_t after = frames->name + frames->name_length;
  frames->sent.length = 0;
  request_add(&frames->sent, &frames->like, message, frames->name);
  request_add(&frames->sent, &frames->like, name, procedure_name(frames->prefix, call->table, name));
  request_add(&frames->sent, &frames->like, message + after, frames->message.length - after);
  request_add(&frames->sent, &frames->like, NULL, 0);
  request_send(line->fd, &frames->sent);
}

struct line *line_open(const struct options *options, const int *tables, int count, int first, long *made) {
  struct line *line = calloc(1, sizeof *line);
  line->done_length = strcmp(options->version, "5.0") ? 13 : 9;
  line->puts = calloc((size_t)count * SETS, sizeof *line->puts);
  line->indexes = calloc(options->tables, sizeof *line->indexes);
  struct client client =
    client_login(options->host, options->port, options->user, options->password, options->version);
  if (options->points) {
    open_frames(&line->frames, &client, options, tables[0], first);
    *made += FRAMES_OF_OPENING;
    count = 0;
  }
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
  if (line->frames.columns) {
    send_frames(line, calls);
    return;
  }
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
