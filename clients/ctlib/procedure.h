/* Stored procedures called by ct-library: log in, call, and get the outcome.
 *
 * A busy, restarting or lost server is an outcome of a call and never ends the program. One connection, and one
 * call at a time, for each thread.
 */
#ifndef PROCEDURE_H
#define PROCEDURE_H

#include <ctpublic.h>

enum outcome {
  ANSWERED,  /* done: the server returned status 0 */
  REFUSED,   /* not done: the server returned an error or another status */
  UNANSWERED /* not known: the connection or the time ran out; it is of no further use */
};

struct answer {
  enum outcome outcome;
  int error;             /* the first error's number; 0 when there was none */
  int status;            /* the return status */
  int output;            /* the first output parameter, when it is an int */
  int output_known;      /* whether there is one, not NULL */
  long rows;             /* rows of results, read and left */
  char text[CS_MAX_MSG]; /* the first error's text, from the server or ct-library */
};

struct login {
  const char *server; /* of the interfaces file; FreeTDS also takes host:port */
  const char *user;
  const char *password;
  const char *version; /* of TDS: 5.0 or 7.4 */
  const char *program; /* as the server's lists of connections show it */
  int patience;        /* seconds for the answer to a call; 0: for ever */
};

/* The version of ct-library, as it reports it. */
const char *library_version(void);

/* The connection, or NULL: `answer` has the reason. Ends the program when ct-library itself cannot be used. */
CS_CONNECTION *log_in(const struct login *login, struct answer *answer);
/* Closes the connection without a logout message: the server may be gone. */
void log_out(CS_CONNECTION *connection);

/* Begins a call. NULL when the connection is dead. */
CS_COMMAND *call_new(CS_CONNECTION *connection, const char *procedure);
/* A parameter by name, with its @; CS_UNUSED is the length of types of fixed size. `value` NULL: NULL.
 * The value is copied. */
int call_parameter(CS_COMMAND *command, const char *name, CS_INT type, const void *value, CS_INT length);
/* A parameter of binary data of any length, such as the points of a waveform, one after another. */
int call_binary(CS_COMMAND *command, const char *name, const char *version, const void *value, CS_INT length);
/* An output parameter, an int. */
int call_output(CS_COMMAND *command, const char *name);
/* Sends the call, reads its whole answer and drops the command. */
enum outcome call_end(CS_COMMAND *command, struct answer *answer);

#endif
