/* Reads token files as llm.c's llmc/dataloader.h does: written anew from its description, in other words and with only
   what decides which files it takes and which ids it sees. No line is copied.

   loader PATTERN B T PROCESSES FIRST COUNT

   prints the number of ids of each file, then the inputs and the last target of COUNT batches of the first process,
   from batch FIRST of the first file on. */
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADER_INTS = 256 };

static void fail(const char *why, const char *what) {
    fprintf(stderr, "%s: %s\n", why, what);
    exit(1);
}

static FILE *open_tokens(const char *path, int64_t *tokens) {
    int32_t header[HEADER_INTS];
    FILE *file = fopen(path, "rb");
    if (!file || fread(header, sizeof header, 1, file) != 1) fail("cannot read", path);
    if (header[0] != 20240520) fail("bad magic", path);
    if (header[1] != 1) fail("bad version", path);
    *tokens = header[2];
    fseek(file, 0, SEEK_END);
    /* The size must be exactly that of the header and of 16-bit ids. */
    if (*tokens <= 0 || ftell(file) != (long)(sizeof header + 2 * *tokens)) fail("bad size", path);
    return file;
}

int main(int argc, char **argv) {
    if (argc != 7) fail("arguments", argv[0]);
    size_t rows = strtoul(argv[2], 0, 10), columns = strtoul(argv[3], 0, 10), processes = strtoul(argv[4], 0, 10);
    size_t batch = strtoul(argv[5], 0, 10), count = strtoul(argv[6], 0, 10), shard = 0;
    size_t ids = rows * columns, step = processes * ids;
    glob_t found;
    if (glob(argv[1], 0, NULL, &found) != 0) fail("no file matches", argv[1]);
    int64_t tokens;
    for (size_t each = 0; each < found.gl_pathc; each++) {
        fclose(open_tokens(found.gl_pathv[each], &tokens));
        /* One id more than the batches of all processes: the last target. */
        if (tokens < (int64_t)step + 1) fail("too few ids", found.gl_pathv[each]);
        printf("%lld\n", (long long)tokens);
    }
    uint16_t *buffer = malloc(2 * (ids + 1));
    if (!buffer) fail("memory", "");
    FILE *file = open_tokens(found.gl_pathv[0], &tokens);
    for (; count > 0; count--, batch++) {
        /* A file has as many batches as are complete with their last target; the rest is not used. */
        if (batch >= (size_t)(tokens - 1) / step) {
            fclose(file);
            shard = (shard + 1) % found.gl_pathc;
            batch = 0;
            file = open_tokens(found.gl_pathv[shard], &tokens);
        }
        long position = (long)(sizeof(int32_t) * HEADER_INTS + 2 * batch * step);
        /* The original converts the position to int, which is negative from 2 GiB on. */
        if (position > INT_MAX || fseek(file, (int)position, SEEK_SET) != 0) fail("cannot seek", argv[1]);
        if (fread(buffer, 2, ids + 1, file) != ids + 1) fail("cannot read", argv[1]);
        for (size_t each = 0; each <= ids; each++) printf("%d ", buffer[each]);
        printf("\n");
    }
    return 0;
}
