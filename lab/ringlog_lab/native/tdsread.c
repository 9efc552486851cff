/* tdsread: reads the rows of a get_<table>_range call at TDS 5.0 or 7.4 and does nothing with them: it counts them
 * and looks at the last DONE.
 *
 * ct-library logs in and makes the call for one and for two rows, which is recorded; the recorded call is then
 * sent for all rows, once for each line on standard input, and answered by a line of JSON.
 */
#include "client.h"
#include "request.h"

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_COLUMNS = 2000, STREAM = 1 << 22 };

/* How a value stands in a row: `fixed` bytes, or a length of `length` bytes and the value; or behind a text pointer,
 * or in chunks. */
struct layout {
  int fixed, length, pointer, chunks;
};

static int tds7, done_length;
static struct layout layouts[MOST_COLUMNS];
static int columns;

/* The tokens of an answer, as far as they have arrived. */
static unsigned char stream[STREAM];
static size_t from, until;

static uint32_t number(const unsigned char *bytes, int size) {
  uint32_t value = 0;
  while (size--) value = value << 8 | bytes[size];
  return value;
}

/* What follows a type byte, and how its values stand in rows (MS-TDS 2.2.5.4, FreeTDS include/freetds/proto.h). */
static const unsigned char *read_type(const unsigned char *at, struct layout *layout) {
  unsigned char type = *at++;
  *layout = (struct layout){0};
  switch (type) {
    case 0x30: case 0x32: layout->fixed = 1; return at;
    case 0x34: layout->fixed = 2; return at;
    case 0x38: case 0x3A: case 0x3B: layout->fixed = 4; return at;
    case 0x3C: case 0x3D: case 0x3E: case 0x7F: case 0xBF: layout->fixed = 8; return at;
    case 0x28: layout->length = 1; return at;                                    /* DATEN */
    case 0x26: case 0x68: case 0x6D: case 0x6E: case 0x6F: layout->length = 1; return at + 1; /* INTN ... DATETIMN */
    case 0x29: case 0x2A: case 0x2B: layout->length = 1; return at + 1;           /* TIMEN, DATETIME2N: scale */
    case 0xBB: case 0xBC: layout->length = 1; return at + 2;                      /* BIGDATETIMEN: length, scale */
    case 0xA7: case 0xE7: layout->length = 2; return at + 7;                      /* (N)VARCHAR: length, collation */
    case 0xA5:                                                                    /* VARBINARY, of 65535 bytes: (max) */
      layout->length = 2, layout->chunks = number(at, 2) == 0xFFFF;
      return at + 2;
    case 0xE1: layout->length = 4; return at + 4;                                 /* LONGBINARY */
    case 0x22: layout->pointer = 1; return at + 4 + 2 + number(at + 4, 2);        /* IMAGE of 5.0: size, table's name */
    default: errx(1, "a column of type 0x%02X: this client does not read it", type);
  }
}

/* COLMETADATA, ROWFMT, ROWFMT2. */
static void read_columns(const unsigned char *at, int token) {
  columns = number(at, 2);
  at += 2;
  if (columns > MOST_COLUMNS) errx(1, "%d columns: this client reads %d", columns, MOST_COLUMNS);
  for (int i = 0; i < columns; i++) {
    if (token == 0x81) {
      at = read_type(at + 4 + 2, &layouts[i]);
      at += 1 + 2 * *at;
      continue;
    }
    at += 1 + *at;
    if (token == 0x61) /* catalogue, schema, table, column */
      for (int name = 0; name < 4; name++) at += 1 + *at;
    at = read_type(at + (token == 0x61 ? 4 : 1) + 4, &layouts[i]);
    at += 1 + *at;
  }
}

/* The end of COLMETADATA, the only token without its length; NULL when it has not all arrived. */
static const unsigned char *columns_end(const unsigned char *at, const unsigned char *end) {
  if (end - at < 2) return NULL;
  int count = number(at, 2);
  at += 2;
  for (int i = 0; i < count; i++) {
    struct layout layout;
    if (end - at < 16) return NULL;
    at = read_type(at + 4 + 2, &layout);
    at += 1 + 2 * *at;
  }
  return at <= end ? at : NULL;
}

/* The end of a value in chunks, NULL when it has not all arrived: its length, 2^64 - 1 for NULL, then chunks up to an
 * empty one. */
static const unsigned char *chunks_end(const unsigned char *at, const unsigned char *end) {
  if (end - at < 8) return NULL;
  if (number(at, 4) == UINT32_MAX && number(at + 4, 4) == UINT32_MAX) return at + 8;
  for (at += 8; end - at >= 4;) {
    uint32_t length = number(at, 4);
    at += 4;
    if (!length) return at;
    if ((size_t)(end - at) < length) return NULL;
    at += length;
  }
  return NULL;
}

/* The end of a row, NULL when it has not all arrived. `nulls`: the bits of an NBCROW. */
static const unsigned char *row_end(const unsigned char *at, const unsigned char *end, const unsigned char *nulls) {
  for (int i = 0; i < columns; i++) {
    if (nulls && nulls[i / 8] >> i % 8 & 1) continue;
    if (layouts[i].fixed) {
      at += layouts[i].fixed;
      continue;
    }
    if (layouts[i].chunks) {
      if (!(at = chunks_end(at, end))) return NULL;
      continue;
    }
    if (layouts[i].pointer) {
      if (end - at < 1) return NULL;
      int pointer = *at++;
      if (!pointer) continue;
      at += pointer + 8; /* the timestamp */
      if (end - at < 4) return NULL;
      at += 4 + number(at, 4);
      continue;
    }
    if (end - at < layouts[i].length) return NULL;
    uint32_t length = number(at, layouts[i].length);
    at += layouts[i].length + (layouts[i].length == 2 && length == 0xFFFF ? 0 : length);
  }
  return at <= end ? at : NULL;
}

struct result {
  long rows, bytes;
  int ended; /* the last token was a DONE without error and without more to come */
};

/* Takes all whole tokens from the stream. */
static void take_tokens(struct result *answer) {
  for (;;) {
    const unsigned char *at = stream + from, *end = stream + until, *next = NULL;
    if (at == end) break;
    int token = *at++;
    switch (token) {
      case 0xD1: next = row_end(at, end, NULL); break;
      case 0xD2: next = end - at < (columns + 7) / 8 ? NULL : row_end(at + (columns + 7) / 8, end, at); break;
      case 0x81: next = columns_end(at, end); break;
      case 0x79: next = at + 4; break;
      case 0xFD: case 0xFE: case 0xFF: next = at + done_length - 1; break;
      case 0x61: if (end - at >= 4) next = at + 4 + number(at, 4); break;
      case 0xEE: case 0xA9: case 0xAA: case 0xAB: case 0xE3: case 0xE5: case 0xAC:
        if (end - at >= 2) next = at + 2 + number(at, 2);
        break;
      default: errx(1, "token 0x%02X in the answer: this client does not read it", token);
    }
    if (!next || next > end) break;
    if (token == 0xD1 || token == 0xD2) answer->rows++;
    if (token == 0x81) read_columns(at, token);
    if (token == 0x61) read_columns(at + 4, token);
    if (token == 0xEE) read_columns(at + 2, token);
    answer->ended = (token == 0xFD || token == 0xFE) && !(at[0] & 3);
    from = next - stream;
  }
  memmove(stream, stream + from, until - from);
  until -= from;
  from = 0;
}

/* Reads an answer to the packet marked last. */
static struct result read_answer(int fd) {
  static unsigned char raw[1 << 18];
  struct result answer = {0};
  size_t have = 0, packet = 0;
  from = until = 0;
  for (;;) {
    ssize_t read = recv(fd, raw + have, sizeof raw - have, 0);
    if (read <= 0) err(1, "the gateway closed the connection");
    have += read, answer.bytes += read;
    int last = 0;
    while (have - packet >= HEADER && !last) {
      size_t length = raw[packet + 2] << 8 | raw[packet + 3];
      if (have - packet < length) break;
      if (until + length > STREAM) errx(1, "a token of more than %d bytes", STREAM);
      memcpy(stream + until, raw + packet + HEADER, length - HEADER);
      until += length - HEADER;
      last = raw[packet + 1] & LAST;
      packet += length;
    }
    take_tokens(&answer);
    memmove(raw, raw + packet, have - packet);
    have -= packet, packet = 0;
    if (last) {
      if (have || until || !answer.ended) errx(1, "the answer does not end with a DONE of success");
      return answer;
    }
  }
}

static struct request record(struct client *client, const char *procedure, CS_INT rows) {
  long found;
  CS_COMMAND *command = call_new(client->connection, procedure);
  if (!command) errx(1, "ct_command failed");
  client_parameter(command, "@max_rows", CS_INT_TYPE, &rows);
  struct request request = client_record(client, command, &found);
  if (found != rows) errx(1, "%s gave %ld rows instead of %d", procedure, found, (int)rows);
  return request;
}

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  const char *host = "127.0.0.1", *user = NULL, *version = "5.0", *procedure = NULL;
  int port = 0, rows = 0;
  for (int letter; (letter = getopt(argc, argv, "h:p:u:v:x:r:")) > 0;) switch (letter) {
      case 'h': host = optarg; break;
      case 'p': port = atoi(optarg); break;
      case 'u': user = optarg; break;
      case 'v': version = optarg; break;
      case 'x': procedure = optarg; break;
      case 'r': rows = atoi(optarg); break;
      default: exit(2);
    }
  if (!port || !user || !procedure || rows < 1) errx(2, "-p port, -u user, -x procedure and -r rows are needed");
  char line[128];
  if (!fgets(line, sizeof line, stdin)) errx(2, "no password on standard input");
  line[strcspn(line, "\n")] = 0;
  tds7 = strcmp(version, "5.0") != 0;
  done_length = tds7 ? 13 : 9;
  setlinebuf(stdout);

  struct client client = client_login(host, port, user, line, version);
  struct request request = record(&client, procedure, 1), two = record(&client, procedure, 2);
  size_t place = request_difference(&request, &two, 0);
  for (int i = 0; i < 4; i++) request.bytes[request_offset(&request, place + i)] = (uint32_t)rows >> 8 * i;
  int fd = client_leave(&client);

  puts("ready");
  while (fgets(line, sizeof line, stdin)) {
    double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    request_send(fd, &request);
    struct result answer = read_answer(fd);
    printf("{\"rows\": %ld, \"bytes\": %ld, \"seconds\": %.6f, \"client\": %.6f}\n", answer.rows, answer.bytes,
           seconds(CLOCK_MONOTONIC) - began, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  }
}
