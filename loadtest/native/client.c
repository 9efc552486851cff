#include "client.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

/* ct-library is used by several threads: each has a context and last words of its own. */
static _Thread_local char said[2048];

static CS_RETCODE client_said(CS_CONTEXT *context, CS_CONNECTION *connection, CS_CLIENTMSG *message) {
  (void)context, (void)connection;
  snprintf(said, sizeof said, "%s", message->msgstring);
  return CS_SUCCEED;
}

static CS_RETCODE server_said(CS_CONTEXT *context, CS_CONNECTION *connection, CS_SERVERMSG *message) {
  (void)context, (void)connection;
  if (message->severity > 10) snprintf(said, sizeof said, "error %d: %s", (int)message->msgnumber, message->text);
  return CS_SUCCEED;
}

static void must(CS_RETCODE outcome, const char *what) {
  if (outcome != CS_SUCCEED) errx(1, "%s failed: %s", what, *said ? said : "ct-library does not say why");
}

static CS_CONTEXT *library(void) {
  static _Thread_local CS_CONTEXT *context;
  if (context) return context;
  must(cs_ctx_alloc(CS_VERSION_100, &context), "cs_ctx_alloc");
  must(ct_init(context, CS_VERSION_100), "ct_init");
  must(ct_callback(context, NULL, CS_SET, CS_CLIENTMSG_CB, (CS_VOID *)client_said), "ct_callback");
  must(ct_callback(context, NULL, CS_SET, CS_SERVERMSG_CB, (CS_VOID *)server_said), "ct_callback");
  return context;
}

static void set(CS_CONNECTION *connection, CS_INT property, const char *value) {
  must(ct_con_props(connection, CS_SET, property, (CS_VOID *)value, CS_NULLTERM, NULL), "ct_con_props");
}

struct client client_login(const char *host, int port, const char *user, const char *password, const char *version) {
  struct client client = {.tap = tap_open(host, port)};
  CS_INT number = !strcmp(version, "5.0") ? CS_TDS_50 : !strcmp(version, "7.4") ? CS_TDS_74 : 0;
  if (!number) errx(2, "TDS version %s: 5.0 and 7.4 are known here", version);
  CS_INT tap = tap_port(client.tap);
  must(ct_con_alloc(library(), &client.connection), "ct_con_alloc");
  set(client.connection, CS_USERNAME, user);
  set(client.connection, CS_PASSWORD, password);
  set(client.connection, CS_APPNAME, "ringlog bench");
  /* not CS_SERVERADDR: with that FreeTDS first asks the name service for a host SYBASE */
  must(ct_con_props(client.connection, CS_SET, CS_PORT, &tap, CS_UNUSED, NULL), "CS_PORT");
  must(ct_con_props(client.connection, CS_SET, CS_TDS_VERSION, &number, CS_UNUSED, NULL), "CS_TDS_VERSION");
  must(ct_connect(client.connection, "127.0.0.1", CS_NULLTERM), "login");
  CS_INT agreed = 0;
  must(ct_con_props(client.connection, CS_GET, CS_TDS_VERSION, &agreed, CS_UNUSED, NULL), "CS_TDS_VERSION");
  if (agreed != number) errx(1, "TDS %s was asked for, and the server agreed to something else", version);
  return client;
}

void client_parameter(CS_COMMAND *command, const char *name, CS_INT type, void *value) {
  CS_DATAFMT format = {.datatype = type, .status = CS_INPUTVALUE, .namelen = CS_NULLTERM};
  snprintf(format.name, sizeof format.name, "%s", name);
  must(ct_param(command, &format, value, CS_UNUSED, 0), name);
}

long client_call(CS_COMMAND *command, const char *procedure) {
  long rows = 0;
  CS_INT kind;
  CS_RETCODE more;
  *said = 0;
  must(ct_send(command), procedure);
  while ((more = ct_results(command, &kind)) == CS_SUCCEED) {
    if (kind == CS_CMD_FAIL) errx(1, "%s failed: %s", procedure, said);
    if (kind != CS_ROW_RESULT && kind != CS_STATUS_RESULT && kind != CS_PARAM_RESULT) continue;
    CS_INT read;
    while (ct_fetch(command, CS_UNUSED, CS_UNUSED, CS_UNUSED, &read) == CS_SUCCEED) rows += kind == CS_ROW_RESULT;
  }
  if (more != CS_END_RESULTS || *said) errx(1, "%s failed: %s", procedure, said);
  return rows;
}

int client_leave(struct client *client) {
  int server = tap_release(client->tap);
  ct_close(client->connection, CS_FORCE_CLOSE);
  ct_con_drop(client->connection);
  return server;
}
