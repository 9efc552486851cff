/* tdslogins: so many clients that log in by ct-library at the same moment, each in a thread of its own.
 *
 * It reads the password, prints `ready`, and at the next line they all begin. When each has its answer it prints the
 * number of logged-in clients, the times of the median and the last of them, and the error of the first failed one. They
 * stay logged in until standard input ends.
 */
#include "procedure.h"

#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK = 512 << 10, PASSWORD = 256 };

static struct login login = {.program = "ringlog bench"};
static pthread_barrier_t begin, end;
static double began;

struct client {
  pthread_t id;
  double in; /* seconds until it was logged in; less than 0: it is not */
  struct answer answer;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *log_in_one(void *argument) {
  struct client *client = argument;
  pthread_barrier_wait(&begin);
  CS_CONNECTION *connection = log_in(&login, &client->answer);
  client->in = connection ? now() - began : -1;
  pthread_barrier_wait(&end);
  return NULL; /* the connection stays until the program ends */
}

static int sooner(const void *one, const void *other) {
  double difference = *(const double *)one - *(const double *)other;
  return (difference > 0) - (difference < 0);
}

static void report(const struct client *clients, int count) {
  double *in = calloc(count, sizeof *in);
  const char *refusal = "";
  int many = 0;
  for (int i = 0; i < count; i++) {
    if (clients[i].in >= 0)
      in[many++] = clients[i].in;
    else if (!*refusal)
      refusal = clients[i].answer.text;
  }
  qsort(in, many, sizeof *in, sooner);
  printf("{\"in\": %d, \"median\": %.6f, \"last\": %.6f, \"refusal\": \"", many, many ? in[many / 2] : 0.0,
         many ? in[many - 1] : 0.0);
  for (const char *letter = refusal; *letter; letter++)
    if ((unsigned char)*letter >= ' ' && *letter != '"' && *letter != '\\') putchar(*letter);
  puts("\"}");
  free(in);
}

int main(int argc, char **argv) {
  char password[PASSWORD];
  if (argc != 5) errx(2, "usage: tdslogins SERVER USER VERSION COUNT, with the password on standard input");
  int count = atoi(argv[4]);
  if (count < 1) errx(2, "COUNT: a number of clients");
  login.server = argv[1], login.user = argv[2], login.version = argv[3], login.password = password;
  setlinebuf(stdout);
  if (!fgets(password, sizeof password, stdin)) errx(2, "no password on standard input");
  password[strcspn(password, "\n")] = 0;
  struct client *clients = calloc(count, sizeof *clients);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  pthread_barrier_init(&begin, NULL, count + 1);
  pthread_barrier_init(&end, NULL, count + 1);
  for (int i = 0; i < count; i++)
    if (pthread_create(&clients[i].id, &small, log_in_one, &clients[i])) errx(1, "no thread for client %d", i + 1);
  puts("ready");
  if (getchar() == EOF) return 0;
  began = now();
  pthread_barrier_wait(&begin);
  pthread_barrier_wait(&end);
  report(clients, count);
  while (getchar() != EOF) continue;
  _Exit(0); /* without a word to the server for each */
}
