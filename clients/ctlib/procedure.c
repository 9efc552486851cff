#include "procedure.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

/* The messages of the callbacks since the last call began; each thread has a context and connections of its own. */
static _Thread_local struct answer received;

/* A login is waited for as long as the line is up: FreeTDS 1.3, when the time for one of TDS 5.0 runs out, logs out
 * first, and waits for the answer to that, and so on without end. */
static _Thread_local int logging_in;

/* The description of a call's parameters, at TDS 5.0 some twenty bytes each, fits into one packet of this size. Where it
 * takes two, and the connection breaks between them, ct_send of FreeTDS (1.3 to 1.5) never returns: the packet it fills
 * is put among the free ones, then follows itself (tds_freeze_close_len). Its packets of TDS 5.0 have 512 bytes. */
static const CS_INT PACKET_SIZE = 16384;

static void note(int error, const char *text) {
  if (*received.text) return;
  received.error = error;
  snprintf(received.text, sizeof received.text, "%s", text);
  received.text[strcspn(received.text, "\r\n")] = 0;
}

static CS_RETCODE server_message(CS_CONTEXT *context, CS_CONNECTION *connection, CS_SERVERMSG *message) {
  (void)context, (void)connection;
  if (message->severity > 10) note((int)message->msgnumber, message->text); /* below are informations */
  return CS_SUCCEED;
}

static int timed_out(const CS_CLIENTMSG *message) {
  return message->msgnumber == 20003 /* FreeTDS: SYBETIME */ || CS_SEVERITY(message->msgnumber) == CS_SV_RETRY_FAIL;
}

static CS_RETCODE library_message(CS_CONTEXT *context, CS_CONNECTION *connection, CS_CLIENTMSG *message) {
  (void)context, (void)connection;
  if (logging_in && timed_out(message)) return CS_SUCCEED; /* continues to wait */
  note(0, message->msgstring);
  return CS_FAIL; /* ends the connection */
}

static CS_CONTEXT *library(int patience) {
  static _Thread_local CS_CONTEXT *context;
  if (!context) {
    if (cs_ctx_alloc(CS_VERSION_100, &context) != CS_SUCCEED || ct_init(context, CS_VERSION_100) != CS_SUCCEED ||
        ct_callback(context, NULL, CS_SET, CS_SERVERMSG_CB, (CS_VOID *)server_message) != CS_SUCCEED ||
        ct_callback(context, NULL, CS_SET, CS_CLIENTMSG_CB, (CS_VOID *)library_message) != CS_SUCCEED)
      errx(1, "ct-library cannot be used");
    CS_INT seconds = patience;
    if (patience && ct_config(context, CS_SET, CS_TIMEOUT, &seconds, CS_UNUSED, NULL) != CS_SUCCEED)
      errx(1, "ct-library takes no time limit of %d s", patience);
  }
  return context;
}

const char *library_version(void) {
  static _Thread_local char text[256];
  CS_INT length;
  if (ct_config(library(0), CS_GET, CS_VER_STRING, text, sizeof text, &length) != CS_SUCCEED) *text = 0;
  return text;
}

/* CS_TDS_50 and its like; 0 for a version that is not known here. */
static CS_INT version_number(const char *version) {
  if (!strcmp(version, "5.0")) return CS_TDS_50;
#ifdef CS_TDS_74 /* FreeTDS; Sybase's own library speaks 5.0 */
  if (!strcmp(version, "7.4")) return CS_TDS_74;
#endif
  return 0;
}

static int set_text(CS_CONNECTION *connection, CS_INT property, const char *value) {
  return ct_con_props(connection, CS_SET, property, (CS_VOID *)value, CS_NULLTERM, NULL) == CS_SUCCEED;
}

CS_CONNECTION *log_in(const struct login *login, struct answer *answer) {
  CS_CONNECTION *connection = NULL;
  CS_INT version = version_number(login->version), agreed = 0, packet_size = PACKET_SIZE;
  if (!version) errx(2, "TDS version %s is not known here", login->version);
  memset(&received, 0, sizeof received);
  if (ct_con_alloc(library(login->patience), &connection) != CS_SUCCEED ||
      !set_text(connection, CS_USERNAME, login->user) || !set_text(connection, CS_PASSWORD, login->password) ||
      !set_text(connection, CS_APPNAME, login->program) ||
      ct_con_props(connection, CS_SET, CS_TDS_VERSION, &version, CS_UNUSED, NULL) != CS_SUCCEED ||
      ct_con_props(connection, CS_SET, CS_PACKETSIZE, &packet_size, CS_UNUSED, NULL) != CS_SUCCEED)
    errx(1, "ct-library refuses the login's properties: %s", received.text);
#ifdef CS_CLIENTCHARSET /* FreeTDS assumes ISO 8859-1; Sybase's library uses the locale */
  set_text(connection, CS_CLIENTCHARSET, "UTF-8");
#endif
  logging_in = 1;
  int connected = ct_connect(connection, (CS_CHAR *)login->server, CS_NULLTERM) == CS_SUCCEED;
  logging_in = 0;
  if (connected) {
    ct_con_props(connection, CS_GET, CS_TDS_VERSION, &agreed, CS_UNUSED, NULL);
    if (agreed == version) {
      received.outcome = ANSWERED;
      *answer = received;
      return connection;
    }
    note(0, "the server does not accept this version of TDS");
  }
  received.outcome = received.error ? REFUSED : UNANSWERED;
  if (!*received.text) note(0, "no connection");
  *answer = received;
  log_out(connection);
  return NULL;
}

void log_out(CS_CONNECTION *connection) {
  if (!connection) return;
  ct_close(connection, CS_FORCE_CLOSE);
  ct_con_drop(connection);
}

CS_COMMAND *call_new(CS_CONNECTION *connection, const char *procedure) {
  CS_COMMAND *command = NULL;
  memset(&received, 0, sizeof received);
  if (ct_cmd_alloc(connection, &command) != CS_SUCCEED) return NULL;
  if (ct_command(command, CS_RPC_CMD, (CS_CHAR *)procedure, CS_NULLTERM, CS_NO_RECOMPILE) == CS_SUCCEED)
    return command;
  ct_cmd_drop(command);
  return NULL;
}

static int parameter(CS_COMMAND *command, const char *name, CS_INT type, const void *value, CS_INT length,
                     CS_INT direction) {
  CS_DATAFMT format = {.datatype = type, .status = direction, .namelen = CS_NULLTERM};
  snprintf(format.name, sizeof format.name, "%s", name);
  return ct_param(command, &format, (CS_VOID *)value, value ? length : CS_UNUSED, value ? 0 : -1) == CS_SUCCEED;
}

int call_parameter(CS_COMMAND *command, const char *name, CS_INT type, const void *value, CS_INT length) {
  return parameter(command, name, type, value, length, CS_INPUTVALUE);
}

int call_binary(CS_COMMAND *command, const char *name, const char *version, const void *value, CS_INT length) {
  /* FreeTDS has no long binary at 7.4, and no image in the calls of 5.0 */
  CS_INT type = strcmp(version, "5.0") ? CS_IMAGE_TYPE : CS_LONGBINARY_TYPE;
  return parameter(command, name, type, value, length, CS_INPUTVALUE);
}

int call_output(CS_COMMAND *command, const char *name) {
  return parameter(command, name, CS_INT_TYPE, NULL, CS_UNUSED, CS_RETURN);
}

/* Reads a result to its end, and stores its first column in `value` if it is an int. Returns whether it was stored. */
static int fetch(CS_COMMAND *command, int *value, long *rows) {
  CS_DATAFMT format = {.datatype = CS_INT_TYPE, .format = CS_FMT_UNUSED, .count = 1};
  CS_INT number = 0, length, read;
  CS_SMALLINT indicator = -1;
  if (value) ct_bind(command, 1, &format, &number, &length, &indicator);
  while (ct_fetch(command, CS_UNUSED, CS_UNUSED, CS_UNUSED, &read) == CS_SUCCEED)
    if (rows) ++*rows;
  if (!value || indicator < 0) return 0;
  *value = number;
  return 1;
}

enum outcome call_end(CS_COMMAND *command, struct answer *answer) {
  CS_INT kind;
  CS_RETCODE more = CS_FAIL;
  int failed = 0, status_known = 0;
  if (ct_send(command) == CS_SUCCEED)
    while ((more = ct_results(command, &kind)) == CS_SUCCEED) switch (kind) {
        case CS_ROW_RESULT: fetch(command, NULL, &received.rows); break;
        case CS_STATUS_RESULT: status_known = fetch(command, &received.status, NULL); break;
        case CS_PARAM_RESULT: received.output_known = fetch(command, &received.output, NULL); break;
        case CS_CMD_FAIL: failed = 1; break;
        default: break;
      }
  if (more != CS_END_RESULTS)
    received.outcome = UNANSWERED, received.error = 0;
  else if (failed || received.error || !status_known || received.status)
    received.outcome = REFUSED;
  else
    received.outcome = ANSWERED;
  if (received.outcome == REFUSED && !*received.text)
    snprintf(received.text, sizeof received.text, "the procedure returned status %d", received.status);
  if (received.outcome == UNANSWERED && !*received.text) note(0, "the connection broke");
  *answer = received;
  ct_cmd_drop(command);
  return received.outcome;
}
