/* writer: a data acquisition process for one table, with one row per cycle, by RPC of put_<table>.
 *
 * It follows the rules of docs/how-to/write.md: it continues after the ring's latest row, sends a row until it is
 * answered, and drops only rows that the server refuses for their content. It keeps one row: cycles that pass
 * before its answer are missed, and counted.
 */
#include "procedure.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
  "usage: writer [options] SERVER USER TABLE ROWS COLUMN...\n"
  "Writes rows of real numbers into the ring TABLE, which has ROWS rows; with a shell: current_{1..200}\n"
  "  -a POINTS   each COLUMN is a waveform of so many doubles, which go as packed binary\n"
  "  -c SECONDS  the cycle (1); 0: the next row as soon as there is an answer\n"
  "  -n COUNT    ends after so many rows; else at SIGTERM or SIGINT\n"
  "  -P FILE     the password is its first line; else the first line of standard input\n"
  "  -i SECONDS  time between two lines of counts (60); the last one comes at the end\n"
  "  -t SECONDS  patience for an answer (30)\n"
  "  -v VERSION  of TDS, 5.0 (default) or 7.4\n"
  "  -V          prints the version of ct-library\n";

enum { NANO = 1000000000 };

static struct {
  struct login login;
  const char *table, *password_file;
  char **columns;
  int rows, width, points;
  long count;
  int64_t cycle, interval; /* ns */
} options = {.login = {.version = "5.0", .program = "ringlog writer", .patience = 30},
             .cycle = NANO,
             .interval = 60LL * NANO};

/* A row is produced once, and then stored, refused, or at the end of the program still waiting. */
static struct {
  long produced, stored, refused, repeated, logins, missed;
  int64_t waited, longest; /* ns: of calls that stored a row, all together; the longest since the last line */
} counts;

struct row {
  int seq_no;
  char time[40];
  float *values;     /* NAN: no reading */
  double **traces;   /* in their place, with -a: the points of each column, as the machine has doubles */
};

static volatile sig_atomic_t stopping;

static void stop(int signal) {
  (void)signal;
  stopping = 1;
}

static int64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * NANO + time.tv_nsec;
}

/* Sleeps until this moment of CLOCK_MONOTONIC, or until the program must stop. */
static void sleep_until(int64_t moment) {
  struct timespec time = {moment / NANO, moment % NANO};
  while (!stopping && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) continue;
}

/* Pauses grow to 10 s, and differ between writers: 60 that come back at once hinder each other. */
static void pause_before(int attempt) {
  int64_t longest = (int64_t)NANO / 10 << (attempt < 7 ? attempt : 7);
  if (longest > 10LL * NANO) longest = 10LL * NANO;
  sleep_until(nanoseconds(CLOCK_MONOTONIC) + longest / 2 + (int64_t)(drand48() * longest / 2));
}

/* The front end: here a real process reads its ADCs. These are numbers that a test can check. */
static void read_out(struct row *row) {
  if (options.points) {
    for (int column = 0; column < options.width; column++)
      for (int point = 0; point < options.points; point++)
        row->traces[column][point] = column + row->seq_no + point / 4096.0;
    return;
  }
  for (int column = 0; column < options.width; column++) row->values[column] = column + row->seq_no / 4096.0f;
}

/* With microseconds and the offset from UTC: this is the same moment in every time zone. */
static void write_time(char *text, size_t size) {
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  size_t length = strftime(text, size, "%Y-%m-%d %H:%M:%S", &parts);
  snprintf(text + length, size - length, ".%06ld+00:00", now.tv_nsec / 1000);
}

static enum outcome put(CS_CONNECTION *connection, const struct row *row, struct answer *answer) {
  char name[CS_MAX_NAME];
  snprintf(name, sizeof name, "put_%s", options.table);
  CS_COMMAND *command = call_new(connection, name);
  CS_INT seq_no = row->seq_no;
  int built = command && call_parameter(command, "@seq_no", CS_INT_TYPE, &seq_no, CS_UNUSED) &&
              call_parameter(command, "@time", CS_CHAR_TYPE, row->time, (CS_INT)strlen(row->time));
  for (int column = 0; built && options.points && column < options.width; column++) {
    /* little-endian, as ringlog expects it; a big-endian machine reverses each double, or the facility file has
     * byte_order = "big" */
    snprintf(name, sizeof name, "@%s", options.columns[column]);
    built = call_binary(command, name, options.login.version, row->traces[column],
                        options.points * (CS_INT)sizeof *row->traces[column]);
  }
  for (int column = 0; built && !options.points && column < options.width; column++) {
    const float *value = &row->values[column];
    snprintf(name, sizeof name, "@%s", options.columns[column]);
    built = call_parameter(command, name, CS_REAL_TYPE, *value == *value ? value : NULL, CS_UNUSED);
  }
  if (built) return call_end(command, answer);
  if (command) ct_cmd_drop(command);
  *answer = (struct answer){.outcome = UNANSWERED, .text = "the call cannot be made"};
  return UNANSWERED;
}

/* Errors as docs/how-to/write.md lists them. All others are temporary (a deadlock, a full disk, a server that
 * restarts): the row is sent again, later. */
static int among(int error, const int *numbers) {
  while (*numbers && *numbers != error) numbers++;
  return *numbers != 0;
}

/* Whether the server refuses this row for its content. */
static int of_content(int error) {
  return among(error, (const int[]){233, 257, 515, 546, 547, 548, 2601, 2627, 8114, 8115, 8152, 0});
}

/* Whether the server refuses every row of this writer: wrong parameters, procedure, rights, login, database. */
static int hopeless(int error) {
  return among(error, (const int[]){201, 229, 911, 2812, 4002, 8143, 8144, 8145, 18456, 0});
}

static void say(const struct answer *answer) {
  if (answer->error)
    warnx("%s: error %d: %s", options.table, answer->error, answer->text);
  else
    warnx("%s: %s", options.table, answer->text);
}

static void report(long waiting) {
  printf("{\"table\": \"%s\", \"time\": %.6f, \"produced\": %ld, \"stored\": %ld, \"refused\": %ld, "
         "\"waiting\": %ld, \"repeated\": %ld, \"logins\": %ld, \"missed\": %ld, \"waited\": %.6f, "
         "\"longest\": %.6f}\n",
         options.table, nanoseconds(CLOCK_REALTIME) * 1e-9, counts.produced, counts.stored, counts.refused, waiting,
         counts.repeated, counts.logins, counts.missed, counts.waited * 1e-9, counts.longest * 1e-9);
  fflush(stdout);
  counts.longest = 0;
}

/* Ends the program when the server will never accept its calls. */
static void give_up(const struct answer *answer, long waiting) {
  say(answer);
  report(waiting);
  exit(1);
}

/* Logs in, with as many attempts as it takes. NULL when the program must stop. */
static CS_CONNECTION *logged_in(long waiting) {
  for (int attempt = 0; !stopping; attempt++) {
    struct answer answer;
    CS_CONNECTION *connection = log_in(&options.login, &answer);
    if (connection) {
      counts.logins++;
      return connection;
    }
    if (hopeless(answer.error)) give_up(&answer, waiting);
    if (attempt == 0) say(&answer);
    pause_before(attempt);
  }
  return NULL;
}

/* The seq_no of the ring's latest row, 0 for a ring never written; repeats the call until there is an answer. */
static int latest(CS_CONNECTION **connection) {
  char name[CS_MAX_NAME];
  snprintf(name, sizeof name, "last_%s", options.table);
  for (int attempt = 0; !stopping; attempt++) {
    struct answer answer = {.outcome = UNANSWERED, .text = "the call cannot be made"};
    if (!*connection && !(*connection = logged_in(0))) break;
    CS_COMMAND *command = call_new(*connection, name);
    if (command && call_output(command, "@seq_no") && call_end(command, &answer) == ANSWERED)
      return answer.output_known ? answer.output : 0;
    if (answer.outcome == REFUSED && hopeless(answer.error)) give_up(&answer, 0);
    say(&answer);
    if (answer.outcome == UNANSWERED) log_out(*connection), *connection = NULL;
    pause_before(attempt);
  }
  return 0;
}

/* Sends the row until it is stored or refused. 0 when the program must stop before there is an answer. */
static int store(CS_CONNECTION **connection, const struct row *row) {
  for (int attempt = 0;; attempt++) {
    struct answer answer;
    if (stopping && attempt) return 0;
    if (!*connection && !(*connection = logged_in(1))) return 0;
    if (attempt) counts.repeated++;
    int64_t began = nanoseconds(CLOCK_MONOTONIC);
    enum outcome outcome = put(*connection, row, &answer);
    if (outcome == ANSWERED) {
      int64_t took = nanoseconds(CLOCK_MONOTONIC) - began;
      counts.stored++, counts.waited += took;
      if (took > counts.longest) counts.longest = took;
      return 1;
    }
    say(&answer);
    if (outcome == REFUSED && hopeless(answer.error)) give_up(&answer, 1);
    if (outcome == REFUSED && of_content(answer.error)) {
      counts.refused++;
      return 1;
    }
    if (outcome == UNANSWERED) log_out(*connection), *connection = NULL;
    pause_before(attempt);
  }
}

/* One row a cycle. Returns the number of rows without an answer, 0 or 1. */
static long write_rows(CS_CONNECTION **connection) {
  struct row row = {.seq_no = latest(connection) % options.rows + 1, .values = calloc(options.width, sizeof(float))};
  if (!row.values) err(1, "no memory");
  if (options.points) {
    row.traces = calloc(options.width, sizeof *row.traces);
    for (int column = 0; row.traces && column < options.width; column++)
      if (!(row.traces[column] = calloc(options.points, sizeof(double)))) err(1, "no memory");
  }
  int64_t due = nanoseconds(CLOCK_MONOTONIC), reported = due;
  long waiting = 0;
  while (!stopping && !waiting && counts.produced != options.count) {
    write_time(row.time, sizeof row.time);
    read_out(&row);
    counts.produced++;
    long before = counts.stored;
    waiting = !store(connection, &row);
    /* a refused row leaves its number to the next one */
    if (counts.stored > before) row.seq_no = row.seq_no % options.rows + 1;
    int64_t now = nanoseconds(CLOCK_MONOTONIC);
    if (now - reported >= options.interval) reported = now, report(waiting);
    if (!options.cycle) continue;
    int64_t passed = now > due ? (now - due) / options.cycle : 0;
    counts.missed += passed;
    due += (passed + 1) * options.cycle;
    if (counts.produced != options.count) sleep_until(due);
  }
  for (int column = 0; row.traces && column < options.width; column++) free(row.traces[column]);
  free(row.traces);
  free(row.values);
  return waiting;
}

static char *read_password(const char *path) {
  static char password[256];
  struct stat status;
  FILE *file = path ? fopen(path, "r") : stdin;
  if (!file) err(2, "%s", path);
  if (path && fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_mode & 077)
    errx(2, "%s may be read by others: chmod 600 %s", path, path);
  if (!fgets(password, sizeof password, file) || !password[strcspn(password, "\n")])
    errx(2, "the password is no line of less than %zu bytes", sizeof password - 1);
  password[strcspn(password, "\n")] = 0;
  if (path) fclose(file);
  return password;
}

static double number(const char *text, char option, double least) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= least && value <= 1e9)) errx(2, "-%c %s: a number from %g on", option, text, least);
  return value;
}

static void read_options(int argc, char **argv) {
  options.count = -1;
  for (int letter; (letter = getopt(argc, argv, "a:c:n:P:i:t:v:V")) > 0;) switch (letter) {
      case 'a': options.points = (int)number(optarg, 'a', 1); break;
      case 'c': options.cycle = (int64_t)(number(optarg, 'c', 0) * NANO); break;
      case 'n': options.count = (long)number(optarg, 'n', 1); break;
      case 'P': options.password_file = optarg; break;
      case 'i': options.interval = (int64_t)(number(optarg, 'i', 0) * NANO); break;
      case 't': options.login.patience = (int)number(optarg, 't', 1); break;
      case 'v': options.login.version = optarg; break;
      case 'V': puts(library_version()), exit(0);
      default: fputs(usage, stderr), exit(2);
    }
  argv += optind, argc -= optind;
  if (argc < 5) fputs(usage, stderr), exit(2);
  options.login.server = argv[0];
  options.login.user = argv[1];
  options.table = argv[2];
  options.rows = atoi(argv[3]);
  options.columns = argv + 4;
  options.width = argc - 4;
  if (options.rows < 1) errx(2, "ROWS %s: the size of the ring, as in the facility file", argv[3]);
  options.login.password = read_password(options.password_file);
}

int main(int argc, char **argv) {
  read_options(argc, argv);
  srand48(getpid() ^ nanoseconds(CLOCK_REALTIME));
  struct sigaction action = {.sa_handler = stop}; /* without SA_RESTART: sleeps end */
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  CS_CONNECTION *connection = NULL;
  long waiting = write_rows(&connection);
  log_out(connection);
  report(waiting);
  return counts.refused || waiting ? 1 : 0;
}
