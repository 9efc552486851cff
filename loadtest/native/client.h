/* A TDS client by FreeTDS's ct-library, behind a tap: its requests can be recorded and sent again. */
#ifndef CLIENT_H
#define CLIENT_H

#include "tap.h"

#include <ctpublic.h>

struct client {
  struct tap *tap;
  CS_CONNECTION *connection;
};

/* Logs in with TDS version 5.0 or 7.4. */
struct client client_login(const char *host, int port, const char *user, const char *password, const char *version);
/* A parameter of the call being built. */
void client_parameter(CS_COMMAND *command, const char *name, CS_INT type, void *value);
/* Sends the call and reads its whole answer; the number of rows in it. Ends the program when it is refused. */
long client_call(CS_COMMAND *command, const char *procedure);
/* Leaves ct-library; the socket stays logged in. */
int client_leave(struct client *client);

#endif
