#include "domain/token.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

static struct token_claims claims_of(const char *event_id, const char *ticket_id)
{
    struct token_claims claims = {
        .key_id = 7,
        .issue = 3,
        .event_id_len = (uint8_t)strlen(event_id),
        .ticket_id_len = (uint8_t)strlen(ticket_id),
    };

    memcpy(claims.event_id, event_id, claims.event_id_len);
    memcpy(claims.ticket_id, ticket_id, claims.ticket_id_len);
    return claims;
}

static size_t text_of(const struct token_claims *claims, char text[TOKEN_CHARS_MAX + 1])
{
    uint8_t body[TOKEN_BODY_BYTES_MAX];
    size_t const body_len = token_body_write(claims, body);
    uint8_t mac[TOKEN_MAC_BYTES];

    memset(mac, 0xA5, sizeof mac);
    return token_text_write(body, body_len, mac, text);
}

/* ---- names ---- */

Test(token_verdict_name, is_set_and_different_for_each)
{
    for (int i = 0; i < TOKEN_VERDICT_COUNT; i++)
        for (int j = 0; j < i; j++)
            cr_expect_str_neq(token_verdict_name((enum token_verdict)i),
                              token_verdict_name((enum token_verdict)j));
    cr_expect_str_eq(token_verdict_name(TOKEN_OK), "ok");
    cr_expect_str_eq(token_verdict_name(TOKEN_BAD_MAC), "bad_mac");
}

/* ---- base64url ---- */

/* RFC 4648 section 10, without padding. */
static const struct {
    const char *plain, *spelled;
} BASE64URL_ROWS[] = {
    {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
    {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "-_-_"},
};

Test(base64url_write, agrees_with_rfc_4648)
{
    for (size_t i = 0; i < sizeof BASE64URL_ROWS / sizeof *BASE64URL_ROWS; i++) {
        char text[16];
        size_t const len = base64url_write((const uint8_t *)BASE64URL_ROWS[i].plain,
                                           strlen(BASE64URL_ROWS[i].plain), text);

        cr_expect_str_eq(text, BASE64URL_ROWS[i].spelled);
        cr_expect_eq(len, strlen(text));
    }
}

Test(base64url_read, gives_back_what_was_written)
{
    for (size_t i = 0; i < sizeof BASE64URL_ROWS / sizeof *BASE64URL_ROWS; i++) {
        const char *spelled = BASE64URL_ROWS[i].spelled;
        uint8_t data[16];
        size_t len = 99;

        cr_expect(base64url_read(spelled, strlen(spelled), data, &len), "%s", spelled);
        cr_expect_eq(len, strlen(BASE64URL_ROWS[i].plain));
        cr_expect_arr_eq(data, BASE64URL_ROWS[i].plain, len);
    }
}

Test(base64url_read, takes_each_value_in_one_spelling_only)
{
    size_t accepted_count = 0;

    /* Of all texts of two characters exactly 256 stand for one byte each. */
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            char const text[2] = {(char)a, (char)b};
            uint8_t data[1];
            size_t len = 0;

            if (base64url_read(text, 2, data, &len)) {
                cr_assert_eq(len, 1);
                accepted_count++;
            }
        }
    cr_expect_eq(accepted_count, 256);
}

/* ---- body and text ---- */

Test(token_body_write, follows_the_layout)
{
    static const uint8_t expected[] = {1,   9,    3, 255, 2, 'e',  '1',  3,    't', '-',
                                       '2', 0x01, 2, 3,   4, 0xFF, 0xFE, 0xFD, 0xFC};
    struct token_claims claims = claims_of("e1", "t-2");
    uint8_t body[TOKEN_BODY_BYTES_MAX];

    claims.key_id = 9;
    claims.issue = 255;
    claims.has_valid_from = claims.has_valid_until = true;
    claims.valid_from_min = 0x01020304;
    claims.valid_until_min = 0xFFFEFDFC;
    cr_assert_eq(token_body_write(&claims, body), sizeof expected);
    cr_expect_arr_eq(body, expected, sizeof expected);
}

Test(token_body_write, marks_each_time_by_its_own_flag)
{
    struct token_claims claims = claims_of("e", "t");
    uint8_t body[TOKEN_BODY_BYTES_MAX];

    cr_expect_eq(token_body_write(&claims, body), TOKEN_BODY_BYTES_MIN);
    cr_expect_eq(body[2], 0);
    claims.has_valid_from = true;
    cr_expect_eq(token_body_write(&claims, body), TOKEN_BODY_BYTES_MIN + 4);
    cr_expect_eq(body[2], 1);
    claims.has_valid_from = false;
    claims.has_valid_until = true;
    cr_expect_eq(token_body_write(&claims, body), TOKEN_BODY_BYTES_MIN + 4);
    cr_expect_eq(body[2], 2);
}

Test(token_text_write, needs_at_most_the_characters_it_says)
{
    struct token_claims claims = {.event_id_len = 64,
                                  .ticket_id_len = 64,
                                  .has_valid_from = true,
                                  .has_valid_until = true,
                                  .valid_until_min = UINT32_MAX};
    char text[TOKEN_CHARS_MAX + 1];

    memset(claims.event_id, 'E', 64);
    memset(claims.ticket_id, 'T', 64);
    cr_expect_eq(text_of(&claims, text), TOKEN_CHARS_MAX);
    cr_expect_eq(strlen(text), TOKEN_CHARS_MAX);
    cr_expect_eq(TOKEN_CHARS_MAX, 211);
}

Test(token_body_write, refuses_an_empty_id, .signal = SIGABRT)
{
    struct token_claims claims = claims_of("", "t");
    uint8_t body[TOKEN_BODY_BYTES_MAX];

    token_body_write(&claims, body);
}

Test(token_body_write, refuses_a_window_that_is_never_open, .signal = SIGABRT)
{
    struct token_claims claims = claims_of("e", "t");
    uint8_t body[TOKEN_BODY_BYTES_MAX];

    claims.has_valid_from = claims.has_valid_until = true;
    token_body_write(&claims, body);
}

/* ---- reading ---- */

Test(token_read, gives_back_the_claims)
{
    static const char *const ids[][2] = {{"e", "t"},
                                         {"evt-003", "tkt-000001"},
                                         {"A.b_c:d-9", "\xc5\x81\xc3\xb3"
                                                       "d\xc5\xba"}};

    for (size_t i = 0; i < 4 * sizeof ids / sizeof *ids; i++) {
        struct token_claims claims = claims_of(ids[i / 4][0], ids[i / 4][1]);
        struct token_parts parts;
        char text[TOKEN_CHARS_MAX + 1];

        claims.has_valid_from = (i & 1) != 0;
        claims.has_valid_until = (i & 2) != 0;
        claims.valid_from_min = claims.has_valid_from ? 3800000 : 0;
        claims.valid_until_min = claims.has_valid_until ? 3800001 : 0;
        cr_assert_eq(token_read(text, text_of(&claims, text), &parts), TOKEN_OK);
        cr_expect_eq(parts.claims.key_id, 7);
        cr_expect_eq(parts.claims.issue, 3);
        cr_expect_str_eq(parts.claims.event_id, claims.event_id);
        cr_expect_str_eq(parts.claims.ticket_id, claims.ticket_id);
        cr_expect_eq(parts.claims.event_id_len, claims.event_id_len);
        cr_expect_eq(parts.claims.ticket_id_len, claims.ticket_id_len);
        cr_expect_eq(parts.claims.has_valid_from, claims.has_valid_from);
        cr_expect_eq(parts.claims.has_valid_until, claims.has_valid_until);
        cr_expect_eq(parts.claims.valid_from_min, claims.valid_from_min);
        cr_expect_eq(parts.claims.valid_until_min, claims.valid_until_min);
    }
}

Test(token_read, leaves_parts_alone_when_it_refuses)
{
    struct token_parts parts;

    memset(&parts, 0x5A, sizeof parts);
    cr_expect_eq(token_read("AQ", 2, &parts), TOKEN_TRUNCATED);
    cr_expect_eq(parts.claims.key_id, 0x5A);
    cr_expect_eq(parts.body_len, (size_t)0x5A5A5A5A5A5A5A5A);
}

Test(token_read, refuses_every_proper_prefix_and_every_longer_text)
{
    struct token_claims claims = claims_of("evt-003", "tkt-000001");
    struct token_parts parts;
    char text[TOKEN_CHARS_MAX + 1];
    char longer[TOKEN_CHARS_MAX + 1];
    size_t const len = text_of(&claims, text);

    for (size_t i = 0; i < len; i++)
        cr_expect_neq(token_read(text, i, &parts), TOKEN_OK, "%zu of %zu characters", i, len);
    for (int c = 0; c < 256; c++) {
        memcpy(longer, text, len);
        longer[len] = (char)c;
        cr_expect_neq(token_read(longer, len + 1, &parts), TOKEN_OK, "character %d added", c);
    }
}

Test(token_read, refuses_more_than_the_longest_token_unread)
{
    char text[TOKEN_CHARS_MAX + 1];
    struct token_parts parts;

    memset(text, 'A', sizeof text);
    cr_expect_eq(token_read(text, TOKEN_CHARS_MAX + 1, &parts), TOKEN_BAD_LENGTH);
    cr_expect_eq(token_read(text, TOKEN_CHARS_MAX, &parts), TOKEN_BAD_VERSION);
    cr_expect_eq(token_read(NULL, 0, &parts), TOKEN_BAD_LENGTH);
}
