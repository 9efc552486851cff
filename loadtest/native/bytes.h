/* Bytes that grow as more are appended. */
#ifndef BYTES_H
#define BYTES_H

#include <stddef.h>

/* Empty when all of it is zero; `at` is to be freed. */
struct bytes {
  unsigned char *at;
  size_t length, capacity;
};

/* Appends a copy; the program ends when there is no memory. */
void bytes_append(struct bytes *to, const unsigned char *bytes, size_t length);

#endif
