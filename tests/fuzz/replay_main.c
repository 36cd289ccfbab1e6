/*
 * Drives a fuzz target over files instead of a fuzzer: the corpus stays a regression test for every
 * compiler, and what the fuzzer found is replayed under any sanitizer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *buffer = malloc(INPUT_BYTES_MAX);
    uint8_t *data = NULL;
    size_t len = 0;
    int result = 1;

    if (file == NULL || buffer == NULL)
        goto out;
    len = fread(buffer, 1, INPUT_BYTES_MAX, file);
    if (ferror(file))
        goto out;
    /* A block of exactly the input's size, so that the sanitizer sees the first byte beyond it. */
    data = realloc(buffer, len > 0 ? len : 1);
    if (data == NULL)
        goto out;
    buffer = NULL;
    result = LLVMFuzzerTestOneInput(data, len);
out:
    if (result != 0)
        perror(path);
    free(data);
    free(buffer);
    if (file != NULL)
        fclose(file);
    return result;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed += replay(argv[i]) != 0;
    printf("%d inputs, %d failed\n", argc - 1, failed);
    return argc > 1 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
