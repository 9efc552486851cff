/* How the test clients in C are asked and answer, whatever their library: lines in, lines of JSON out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_LINE (4 << 20)

static void die(const char *what)
{
    fflush(stdout);
    fprintf(stderr, "%s\n", what);
    exit(2);
}

static void put_text(const char *text, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) text[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* The next field of a line, its escapes undone; NULL when there is none. */
static char *field(char **rest)
{
    char *start = *rest, *out = start, *in;

    if (start == NULL)
        return NULL;
    for (in = start; *in != '\0' && *in != '\t'; in++) {
        if (*in == '\\' && in[1] != '\0') {
            in++;
            *out++ = *in == 't' ? '\t' : *in == 'n' ? '\n' : *in;
        } else
            *out++ = *in;
    }
    *rest = *in == '\t' ? in + 1 : NULL;
    *out = '\0';
    return start;
}

static char *next_line(void)
{
    static char line[LONGEST_LINE];

    if (fgets(line, sizeof line, stdin) == NULL)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line;
}
