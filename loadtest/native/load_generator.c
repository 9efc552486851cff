#include "load_generator.h"

#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TICKS_A_SECOND = 1000, LARGEST_BATCH = 64, OPENING_THREADS = 8 };

/* A line and where it is in its tables. Several connections of one table share its ring: each has its own
 * part of the rows, so that no two calls are of one row. */
struct writer {
  struct line *line;
  int *tables, count, next;
  int low, span;
  long *laps; /* calls so far, for each table */
  long transactions;
  int64_t sent;
  int64_t due; /* of the next call, when there is a rate to keep */
};

/* Connections served by one thread, and its results. */
struct thread {
  pthread_t id;
  struct writer **writers;
  int count;
  uint32_t *latencies; /* 100 ns */
  size_t calls, capacity;
  long acknowledged;
};

static struct options options;
static struct writer **writers; /* one for each connection */
static int opened;
static long made; /* calls made while opening */
/* A line is warm after so many transactions: its plans are made (PostgreSQL settles on one after five). */
enum { WARMING = 7 };
/* Seconds after which a line that does not answer ends the run. */
enum { SILENCE = 60 };

static int64_t begin = INT64_MAX, end = INT64_MAX; /* of the measurement; known once all lines are warm */
static int warm_lines;
static long counted;                               /* answers in it */
static unsigned *acknowledged_at;                  /* calls acknowledged in each tick of it */
static unsigned *longest_in_second;                /* 100 ns */

static int64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t now(void) { return nanoseconds(CLOCK_MONOTONIC); }

int64_t unix_microseconds(void) { return nanoseconds(CLOCK_REALTIME) / 1000; }

float reading(int table, int set, int column) {
  uint32_t hash = table * 0x9E3779B1u ^ set * 0x85EBCA77u ^ column * 0xC2B2AE3Du;
  hash = (hash ^ hash >> 15) * 0x2C1B3C6Du;
  hash = (hash ^ hash >> 12) * 0x297A2D39u;
  hash ^= hash >> 15;
  return ((int32_t)(hash >> 8) - (1 << 23)) / 1024.0f;
}

/* The next call of a writer: rows one after the other, tables in turn. */
static struct call next_call(struct writer *writer) {
  int index = writer->next++ % writer->count;
  long lap = writer->laps[index]++;
  struct call call = {
    .table = writer->tables[index],
    .seq_no = writer->low + (options.first + lap) % writer->span,
    .set = lap % SETS,
    .number = lap,
    .time = unix_microseconds(),
  };
  return call;
}

/* Connections and tables are dealt out evenly: several tables to a connection, or several connections to a
 * table. */
static struct writer *writer_new(int number) {
  struct writer *writer = calloc(1, sizeof *writer);
  int shares = (options.connections + options.tables - 1) / options.tables;
  int share = number / options.tables;
  writer->low = 1 + options.rows * share / shares;
  writer->span = options.rows * (share + 1) / shares + 1 - writer->low;
  writer->tables = calloc(options.tables, sizeof *writer->tables);
  writer->laps = calloc(options.tables, sizeof *writer->laps);
  for (int table = number % options.tables; table < options.tables; table += options.connections)
    writer->tables[writer->count++] = table;
  return writer;
}

/* Logs in connections that no thread has begun with: one after the other takes too long. */
static void *open_lines(void *argument) {
  (void)argument;
  for (int i; (i = __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED)) < options.connections;) {
    struct writer *writer = writers[i] = writer_new(i);
    long calls = 0;
    writer->line = line_open(&options, writer->tables, writer->count, writer->low, &calls);
    __atomic_add_fetch(&made, calls, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void send_calls(struct writer *writer) {
  struct call calls[LARGEST_BATCH];
  for (int i = 0; i < options.batch; i++) calls[i] = next_call(writer);
  writer->sent = now();
  if (options.rate > 0) {
    /* a call that goes late because the one before took long has waited since it was due */
    int64_t due = writer->due ? writer->due : writer->sent;
    writer->due = due + (int64_t)(1e9 / options.rate);
    writer->sent = due;
  }
  line_send(writer->line, calls, options.batch);
}

/* Counts an answer; whether there is time for another call. */
static int note(struct thread *thread, struct writer *writer, int64_t answered) {
  int64_t start = __atomic_load_n(&begin, __ATOMIC_ACQUIRE), stop = __atomic_load_n(&end, __ATOMIC_ACQUIRE);
  int64_t sent = writer->sent;
  thread->acknowledged += options.batch;
  if (++writer->transactions == WARMING) __atomic_add_fetch(&warm_lines, 1, __ATOMIC_RELAXED);
  if (answered < start) return 1;
  while (answered >= stop) {
    if (__atomic_load_n(&counted, __ATOMIC_ACQUIRE)) return 0;
    /* a busy machine may answer nothing for so long: the measurement continues until it has */
    if (__atomic_compare_exchange_n(&end, &stop, answered + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
  }
  __atomic_add_fetch(&counted, 1, __ATOMIC_RELEASE);
  uint32_t latency = (answered - sent) / 100;
  int64_t since = answered - start;
  __atomic_add_fetch(&acknowledged_at[since / (1000000000 / TICKS_A_SECOND)], options.batch, __ATOMIC_RELAXED);
  unsigned *longest = &longest_in_second[since / 1000000000];
  if (latency > __atomic_load_n(longest, __ATOMIC_RELAXED)) __atomic_store_n(longest, latency, __ATOMIC_RELAXED);
  if (thread->calls + options.batch > thread->capacity) {
    thread->capacity = 2 * thread->capacity + 65536;
    thread->latencies = realloc(thread->latencies, thread->capacity * sizeof *thread->latencies);
    if (!thread->latencies) err(1, "no memory");
  }
  for (int i = 0; i < options.batch; i++) thread->latencies[thread->calls++] = latency;
  return 1;
}

/* Sends the calls that are due. Returns the milliseconds until another is. */
static int send_due(struct thread *thread, char *waiting) {
  int64_t soonest = INT64_MAX;
  for (int i = 0; i < thread->count; i++) {
    struct writer *writer = thread->writers[i];
    if (!waiting[i]) continue;
    if (writer->due <= now())
      waiting[i] = 0, send_calls(writer);
    else if (writer->due < soonest)
      soonest = writer->due;
  }
  if (soonest == INT64_MAX) return 1000 * SILENCE;
  int64_t left = soonest - now();
  return left > 0 ? left / 1000000 + 1 : 0;
}

/* Each answer is followed by the next call, at once or when it is due, until the time is over and the last answer
 * is there. */
static void *serve(void *argument) {
  struct thread *thread = argument;
  char *waiting = calloc(thread->count, 1); /* for the time of their next call */
  int epoll = epoll_create1(0);
  for (int i = 0; i < thread->count; i++) {
    struct epoll_event interest = {.events = EPOLLIN, .data.u32 = i};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, line_fd(thread->writers[i]->line), &interest)) err(1, "epoll_ctl");
  }
  for (int i = 0; i < thread->count; i++) send_calls(thread->writers[i]);
  for (int busy = thread->count; busy > 0;) {
    struct epoll_event events[64];
    int patience = options.rate > 0 ? send_due(thread, waiting) : 1000 * SILENCE;
    int ready = epoll_wait(epoll, events, 64, patience);
    if (ready == 0 && patience == 1000 * SILENCE) errx(1, "no answer for %d s", SILENCE);
    for (int i = 0; i < ready; i++) {
      uint32_t index = events[i].data.u32;
      struct writer *writer = thread->writers[index];
      if (!line_answered(writer->line)) continue;
      if (!note(thread, writer, now()))
        busy--;
      else if (options.rate > 0)
        waiting[index] = 1;
      else
        send_calls(writer);
    }
  }
  free(waiting);
  close(epoll);
  return NULL;
}

static void sleep_until(int64_t moment) {
  struct timespec time = {moment / 1000000000, moment % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL)) continue;
}

static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void report(struct thread *threads, double cpu) {
  size_t calls = 0;
  long acknowledged = made;
  for (int i = 0; i < options.threads; i++) calls += threads[i].calls, acknowledged += threads[i].acknowledged;
  uint32_t *all = malloc(calls * sizeof *all);
  if (!all) err(1, "no memory");
  size_t offset = 0;
  for (int i = 0; i < options.threads; i++) {
    memcpy(all + offset, threads[i].latencies, threads[i].calls * sizeof *all);
    offset += threads[i].calls;
  }
  qsort(all, calls, sizeof *all, ascending);
  int seconds = (end - begin + 999999999) / 1000000000, silence = 0;
  for (int tick = 0, silent = 0; tick < (end - begin) / (1000000000 / TICKS_A_SECOND); tick++) {
    silent = acknowledged_at[tick] ? 0 : silent + 1;
    if (silent > silence) silence = silent;
  }
  printf("{\"calls\": %zu, \"acknowledged\": %ld, \"seconds\": %.6f, \"cpu\": %.6f", calls, acknowledged,
         (end - begin) * 1e-9, cpu);
  const struct { const char *name; double part; } quantiles[] = {
    {"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1.0}};
  for (int i = 0; i < 4; i++)
    printf(", \"%s\": %.7f", quantiles[i].name, all[(size_t)((calls - 1) * quantiles[i].part)] * 1e-7);
  printf(", \"silence\": %.3f, \"by_second\": [", silence * 1.0 / TICKS_A_SECOND);
  for (int second = 0; second < seconds; second++) {
    long in_second = 0;
    for (int tick = 0; tick < TICKS_A_SECOND; tick++) in_second += acknowledged_at[second * TICKS_A_SECOND + tick];
    printf("%s[%ld, %.7f]", second ? ", " : "", in_second, longest_in_second[second] * 1e-7);
  }
  printf("]}\n");
}

/* The points of a waveform, as they are sent. */
static void read_points(const char *name) {
  FILE *file = fopen(name, "rb");
  if (!file) err(2, "%s", name);
  fseek(file, 0, SEEK_END);
  options.points_length = ftell(file);
  rewind(file);
  unsigned char *points = malloc(options.points_length);
  if (!points || fread(points, 1, options.points_length, file) != options.points_length) errx(2, "%s: unreadable", name);
  fclose(file);
  options.points = points;
}

static void read_options(int argc, char **argv) {
  options = (struct options){.host = "127.0.0.1", .database = "ringlog", .version = "5.0", .column = "current_",
                             .columns = 200, .tables = 60, .rows = 3000, .connections = 60, .threads = 1,
                             .batch = 1, .warm = 1, .seconds = 5};
  for (int letter; (letter = getopt(argc, argv, "h:p:u:d:v:x:k:c:t:r:f:n:j:b:w:s:q:mF:y:")) > 0;) switch (letter) {
      case 'h': options.host = optarg; break;
      case 'p': options.port = atoi(optarg); break;
      case 'u': options.user = optarg; break;
      case 'd': options.database = optarg; break;
      case 'v': options.version = optarg; break;
      case 'x': options.prefix = optarg; break;
      case 'k': options.column = optarg; break;
      case 'c': options.columns = atoi(optarg); break;
      case 't': options.tables = atoi(optarg); break;
      case 'r': options.rows = atoi(optarg); break;
      case 'f': options.first = atoi(optarg); break;
      case 'n': options.connections = atoi(optarg); break;
      case 'j': options.threads = atoi(optarg); break;
      case 'b': options.batch = atoi(optarg); break;
      case 'w': options.warm = atof(optarg); break;
      case 's': options.seconds = atof(optarg); break;
      case 'q': options.rate = atof(optarg); break;
      case 'm': options.marked = 1; break;
      case 'F': read_points(optarg); break;
      case 'y': options.doubles = *optarg == 'd'; break;
      default: exit(2);
    }
  if (!options.port || !options.user || !options.prefix) errx(2, "-p port, -u user and -x table prefix are needed");
  if (options.batch < 1 || options.batch > LARGEST_BATCH) errx(2, "-b: 1 to %d calls", LARGEST_BATCH);
  if (options.threads < 1 || options.connections < options.threads) errx(2, "-j: no more threads than connections");
  if (!options.points && options.rows < CALLS_OF_OPENING * ((options.connections + options.tables - 1) / options.tables))
    errx(2, "-r: a ring needs %d rows for each of its connections", CALLS_OF_OPENING);
  if (!fgets(options.password, sizeof options.password, stdin)) errx(2, "no password on standard input");
  options.password[strcspn(options.password, "\n")] = 0;
}

int main(int argc, char **argv) {
  read_options(argc, argv);
  setlinebuf(stdout);
  struct thread *threads = calloc(options.threads, sizeof *threads);
  writers = calloc(options.connections, sizeof *writers);
  pthread_t opening[OPENING_THREADS];
  for (int i = 0; i < OPENING_THREADS; i++)
    if (pthread_create(&opening[i], NULL, open_lines, NULL)) errx(1, "no thread");
  for (int i = 0; i < OPENING_THREADS; i++) pthread_join(opening[i], NULL);
  for (int i = 0; i < options.connections; i++) {
    struct thread *thread = &threads[i % options.threads];
    thread->writers = realloc(thread->writers, (thread->count + 1) * sizeof *thread->writers);
    thread->writers[thread->count++] = writers[i];
  }
  usleep(10000); /* the calls made so far are older than any to come, also in 1/300 s */
  acknowledged_at = calloc((options.seconds + SILENCE + 2) * TICKS_A_SECOND, sizeof *acknowledged_at);
  longest_in_second = calloc(options.seconds + SILENCE + 2, sizeof *longest_in_second);
  for (int i = 0; i < options.threads; i++)
    if (pthread_create(&threads[i].id, NULL, serve, &threads[i])) errx(1, "no thread");
  int64_t soonest = now() + options.warm * 1e9;
  while (__atomic_load_n(&warm_lines, __ATOMIC_RELAXED) < options.connections) usleep(1000);
  sleep_until(soonest);
  puts("begin");
  /* on a busy machine the process that measures the server's CPU may be late, and find the server idle */
  for (int byte = 0; options.marked && byte != '\n';)
    if ((byte = getchar()) == EOF) errx(1, "nobody counts");
  double cpu = cpu_seconds();
  int64_t start = now();
  __atomic_store_n(&end, start + (int64_t)(options.seconds * 1e9), __ATOMIC_RELEASE);
  __atomic_store_n(&begin, start, __ATOMIC_RELEASE);
  sleep_until(end);
  while (!__atomic_load_n(&counted, __ATOMIC_ACQUIRE)) usleep(1000);
  cpu = cpu_seconds() - cpu;
  puts("end");
  for (int i = 0; i < options.threads; i++) pthread_join(threads[i].id, NULL);
  while (getchar() != EOF) continue; /* the server's CPU is measured before its processes end */
  report(threads, cpu);
}
