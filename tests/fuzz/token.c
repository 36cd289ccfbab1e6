/*
 * Any bytes as a token: reading them is safe, and what is read has exactly one spelling, the one
 * that was given.
 */
#include "domain/token.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct token_parts parts;
    uint8_t body[TOKEN_BODY_BYTES_MAX];
    char text[TOKEN_CHARS_MAX + 1];

    if (token_read((const char *)data, len, &parts) != TOKEN_OK)
        return 0;
    assert(token_body_write(&parts.claims, body) == parts.body_len);
    assert(memcmp(body, parts.body, parts.body_len) == 0);
    assert(token_text_write(body, parts.body_len, parts.mac, text) == len);
    assert(memcmp(text, data, len) == 0);
    return 0;
}
