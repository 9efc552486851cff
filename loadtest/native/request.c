#include "request.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

size_t request_offset(const struct request *request, size_t offset) {
  size_t packet = 0;
  while (packet + HEADER <= request->length) {
    size_t body = (request->bytes[packet + 2] << 8 | request->bytes[packet + 3]) - HEADER;
    if (offset < body) return packet + HEADER + offset;
    offset -= body, packet += HEADER + body;
  }
  return request->length;
}

size_t request_difference(const struct request *one, const struct request *other, size_t offset) {
  if (one->length != other->length) errx(1, "recorded requests of one shape differ in length");
  for (;; offset++) {
    size_t at = request_offset(one, offset);
    if (at >= one->length) errx(1, "recorded requests do not show where their parameters are");
    if (one->bytes[at] != other->bytes[at]) return offset;
  }
}

void request_send(int fd, const struct request *request) {
  for (size_t sent = 0; sent < request->length;) {
    ssize_t part = send(fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
    if (part < 0) err(1, "sending to the gateway");
    sent += part;
  }
}

static size_t packet_size(const unsigned char *packet) { return packet[2] << 8 | packet[3]; }

struct request request_message(const struct request *request) {
  struct request message = {.bytes = malloc(request->length)};
  if (!message.bytes) err(1, "no memory");
  for (size_t packet = 0; packet < request->length; packet += packet_size(request->bytes + packet)) {
    size_t body = packet_size(request->bytes + packet) - HEADER;
    memcpy(message.bytes + message.length, request->bytes + packet + HEADER, body);
    message.length += body;
  }
  return message;
}

void request_add(struct request *request, const struct request *like, const unsigned char *bytes, size_t length) {
  size_t full = packet_size(like->bytes), packet = request->length - request->length % full;
  if (!bytes) {
    /* all packets are full but the last, which is not empty */
    if (!(request->length % full)) packet -= full;
    request->bytes[packet + 1] = LAST;
    request->bytes[packet + 2] = (request->length - packet) >> 8;
    request->bytes[packet + 3] = request->length - packet;
    return;
  }
  while (length) {
    if (!(request->length % full)) {
      memcpy(request->bytes + request->length, like->bytes, HEADER);
      request->bytes[request->length + 1] = 0;
      request->bytes[request->length + 6] = request->length / full + 1;
      request->length += HEADER;
    }
    size_t room = full - request->length % full, part = length < room ? length : room;
    memcpy(request->bytes + request->length, bytes, part);
    request->length += part, bytes += part, length -= part;
  }
}
