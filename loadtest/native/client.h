/* A TDS client by ct-library, behind a proxy: its requests can be recorded and sent again. Any error ends
 * the program. */
#ifndef CLIENT_H
#define CLIENT_H

#include "procedure.h"
#include "request.h"
#include "recording_proxy.h"

struct client {
  struct recording_proxy *proxy;
  CS_CONNECTION *connection;
};

/* Logs in with TDS version 5.0 or 7.4. */
struct client client_login(const char *host, int port, const char *user, const char *password, const char *version);
/* A parameter, of a type of fixed size, of the call being built. */
void client_parameter(CS_COMMAND *command, const char *name, CS_INT type, const void *value);
/* Makes the call, reads its whole answer, and returns the request as it was sent; `rows` (or NULL) is how many the
 * answer had. */
struct request client_record(struct client *client, CS_COMMAND *command, long *rows);
/* Leaves ct-library; the socket stays logged in. */
int client_leave(struct client *client);

#endif
