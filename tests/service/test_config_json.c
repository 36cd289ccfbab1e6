#include "service/config_json.h"

#include "service/batch_json.h"
#include "service/file.h"
#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 32 and 31 bytes; 128 and 129 bytes are made where they are needed. */
#define SECRET_A     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define SECRET_B     "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"
#define SECRET_SHORT "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

#define KEY(id, secret)                                                                            \
    "{\"id\": " id ", \"client\": \"*\", \"secret\": \"" secret                                    \
    "\", \"sign_from\": \"2026-01-01T00:00:00Z\"}"

enum { JANUARY_2026_S = 1767225600 };

static char path[] = "/tmp/test_config_json_XXXXXX";

static void setup(void)
{
    int const fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
    config_json_start();
    cr_assert_eq(sign_start(NULL), ST_OK);
}

static void teardown(void)
{
    cr_assert_eq(unlink(path), 0);
}

static void text_write(const char *text, size_t len)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, len, file), len);
    cr_assert_eq(fclose(file), 0);
}

/* ---- the end of memory ---- */

/* jansson goes on where one of its buffers cannot grow: what it read then must not count, whichever
 * of the two modules' memory functions it has. */
static void expect_whole_rings_or_none(void)
{
    bool has_failed = true;
    size_t call = 1;

    for (; has_failed; call++) {
        struct key_ring ring = {0};
        struct error err = {0};
        enum status st;

        failing_memory_start(call);
        st = key_ring_read(path, &ring, &err);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu: %s", call, err.text);
        cr_expect_eq(ring.keys_count, has_failed ? 0 : 2);
        key_ring_clear(&ring);
    }
    cr_expect_gt(call, 20);
}

Test(key_ring_read, fails_at_each_end_of_memory, .init = setup, .fini = teardown)
{
    static const char RING[] = "{\"keys\": [" KEY("1", SECRET_A) "," KEY("2", SECRET_B) "]}";

    text_write(RING, sizeof RING - 1);
    cr_assert_eq(chmod(path, 0600), 0);
    expect_whole_rings_or_none();
    cr_assert_eq(batch_json_start(PARSE_BYTES_MAX_DEFAULT, NULL), ST_OK);
    expect_whole_rings_or_none();
    cr_expect_eq(batch_json_bytes_in_use(), 0);
}

/* ---- key rings ---- */

Test(key_ring_read, reads_what_the_fixture_says, .init = setup, .fini = teardown)
{
    struct key_ring ring;
    struct bytes text;
    struct error err = {0};

    /* A checkout is open to everyone, which a key ring must not be. */
    cr_assert_eq(file_read("fixtures/keys/test-ring.json", CONFIG_FILE_BYTES_MAX, &text, &err),
                 ST_OK, "%s", err.text);
    text_write((const char *)text.data, text.len);
    bytes_clear(&text);
    cr_assert_eq(key_ring_read(path, &ring, &err), ST_OK, "%s", err.text);
    cr_assert_eq(ring.keys_count, 2);
    cr_expect_eq(ring.keys[0].id, 1);
    cr_expect_str_eq(ring.keys[0].client, "*");
    cr_expect_eq(ring.keys[0].secret_len, 32);
    cr_expect_eq(ring.keys[0].secret[0], 0x86);
    cr_expect_eq(ring.keys[0].sign_from_s, 1577836800);
    cr_expect_eq(ring.keys[0].verify_until_s, 1798761600);
    cr_expect_eq(ring.keys[1].verify_until_s, KEY_VERIFY_FOR_EVER);
    key_ring_clear(&ring);
}

static struct signing_key key_of(uint8_t id, const char *client, size_t secret_len)
{
    struct signing_key key = {.id = id,
                              .secret_len = secret_len,
                              .sign_from_s = JANUARY_2026_S,
                              .verify_until_s = KEY_VERIFY_FOR_EVER};

    memset(key.secret, 0xF0 + id, secret_len);
    snprintf(key.client, sizeof key.client, "%s", client);
    return key;
}

Test(key_ring_print, writes_what_key_ring_read_takes, .init = setup, .fini = teardown)
{
    struct signing_key keys[] = {key_of(0, "alpha", KEY_SECRET_BYTES_MIN),
                                 key_of(255, "b.e_t:a-9", KEY_SECRET_BYTES_MAX)};
    struct key_ring const ring = {.keys = keys, .keys_count = 2};
    struct key_ring read;
    FILE *file = fopen(path, "w");
    struct error err = {0};

    keys[1].verify_until_s = JANUARY_2026_S + 1;
    cr_assert_not_null(file);
    cr_assert_eq(key_ring_print(file, &ring, NULL), ST_OK);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(key_ring_read(path, &read, &err), ST_OK, "%s", err.text);
    cr_assert_eq(read.keys_count, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(read.keys[i].id, keys[i].id);
        cr_expect_str_eq(read.keys[i].client, keys[i].client);
        cr_assert_eq(read.keys[i].secret_len, keys[i].secret_len);
        cr_expect_arr_eq(read.keys[i].secret, keys[i].secret, keys[i].secret_len);
        cr_expect_eq(read.keys[i].sign_from_s, keys[i].sign_from_s);
        cr_expect_eq(read.keys[i].verify_until_s, keys[i].verify_until_s);
    }
    key_ring_clear(&read);
}

static const struct {
    const char *text, *message;
} BAD_RINGS[] = {
    {"", "line 1, column 0: ends too early"},
    {"{\"keys\": [" KEY("1", SECRET_A) "]", "ends too early"},
    {"[]", "the whole text: must be an object"},
    {"{}", "/keys: is required"},
    {"{\"keys\": {}}", "/keys: must be an array of 1 to 256 keys"},
    {"{\"keys\": []}", "/keys: must be an array of 1 to 256 keys"},
    {"{\"keys\": [1]}", "/keys/0: must be an object"},
    {"{\"keys\": [" KEY("1", SECRET_A) "], \"more\": 1}", "/more: there is no such member"},
    {"{\"keys\": [" KEY("1", SECRET_A) ", {\"id\": 2, \"salt\": 1}]}",
     "/keys/1/salt: there is no such member"},
    {"{\"keys\": [{\"id\": 1, \"id\": 2}]}", "the same member twice"},
    {"{\"keys\": [{}]}", "/keys/0/id: is required"},
    {"{\"keys\": [" KEY("-1", SECRET_A) "]}", "/keys/0/id: must be an integer from 0 to 255"},
    {"{\"keys\": [" KEY("256", SECRET_A) "]}", "/keys/0/id: must be an integer from 0 to 255"},
    {"{\"keys\": [" KEY("1.0", SECRET_A) "]}", "/keys/0/id: must be an integer from 0 to 255"},
    {"{\"keys\": [" KEY("\"1\"", SECRET_A) "]}", "/keys/0/id: must be an integer"},
    {"{\"keys\": [" KEY("1", "") "]}", "/keys/0/secret: must be 32 to 128 bytes"},
    {"{\"keys\": [" KEY("1", SECRET_SHORT) "]}", "/keys/0/secret: must be 32 to 128 bytes"},
    {"{\"keys\": [" KEY("1", SECRET_A "=") "]}", "/keys/0/secret: must be 32 to 128 bytes"},
    {"{\"keys\": [" KEY("1", SECRET_SHORT "B") "]}", "/keys/0/secret: must be 32 to 128 bytes"},
    {"{\"keys\": [" KEY("1", SECRET_A) ", " KEY("1", SECRET_B) "]}", "key 1: there are two"},
    {"{\"keys\": [" KEY("1", SECRET_A) ", " KEY("2", SECRET_A) "]}", "key 2: has the same secret"},
    {"{\"keys\": [{\"id\": 1}]}", "/keys/0/client: is required"},
    {"{\"keys\": [{\"id\": 1, \"client\": 1}]}", "/keys/0/client: must be a string"},
    {"{\"keys\": [{\"id\": 1, \"client\": \"\"}]}", "/keys/0/client: must be \"*\" or"},
    {"{\"keys\": [{\"id\": 1, \"client\": \"a b\"}]}", "/keys/0/client: must be \"*\" or"},
    {"{\"keys\": [{\"id\": 1, \"client\": \"*\", \"secret\": null}]}",
     "/keys/0/secret: must be a string"},
    {"{\"keys\": [{\"id\": 1, \"client\": \"*\", \"secret\": \"" SECRET_A "\"}]}",
     "/keys/0/sign_from: is required"},
    {"{\"keys\": [{\"id\": 1, \"client\": \"*\", \"secret\": \"" SECRET_A
     "\", \"sign_from\": \"2026-01-01\"}]}",
     "/keys/0/sign_from: "},
    {"{\"keys\": [{\"id\": 1, \"client\": \"*\", \"secret\": \"" SECRET_A
     "\", \"sign_from\": \"2026-01-01T00:00:00Z\", \"verify_until\": null}]}",
     "/keys/0/verify_until: must be a string"},
    {"{\"keys\": [{\"id\": 1, \"client\": \"*\", \"secret\": \"" SECRET_A
     "\", \"sign_from\": \"2026-01-01T00:00:00Z\", \"verify_until\": "
     "\"2026-01-01T00:00:00Z\"}]}",
     "key 1: verify_until is not after sign_from"},
};

Test(key_ring_read, names_file_place_and_rule, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof BAD_RINGS / sizeof *BAD_RINGS; i++) {
        struct key_ring ring;
        struct error err = {0};

        text_write(BAD_RINGS[i].text, strlen(BAD_RINGS[i].text));
        cr_expect_eq(key_ring_read(path, &ring, &err), ST_INVALID, "%s", BAD_RINGS[i].text);
        cr_expect_null(ring.keys);
        cr_expect_eq(strncmp(err.text, path, strlen(path)), 0, "%s", err.text);
        cr_expect_not_null(strstr(err.text, BAD_RINGS[i].message), "%s: %s", BAD_RINGS[i].text,
                           err.text);
    }
}

/* A fault beside a secret: jansson's own message would quote it. */
Test(key_ring_read, never_quotes_a_secret, .init = setup, .fini = teardown)
{
    static const char *const texts[] = {
        "{\"keys\": [{\"secret\": \"" SECRET_B "\" \"" SECRET_B "\"}]}",
        "{\"keys\": [{\"secret\": " SECRET_B "}]}",
        "{\"keys\": [{\"secret\": \"" SECRET_B,
        "{\"keys\": [{\"secret\": \"" SECRET_B "\x01\"}]}",
        "{\"keys\": [" KEY("1", SECRET_B "!") "]}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct key_ring ring;
        struct error err = {0};

        text_write(texts[i], strlen(texts[i]));
        cr_expect_eq(key_ring_read(path, &ring, &err), ST_INVALID);
        cr_expect_null(strstr(err.text, "BBBB"), "%s", err.text);
    }
}

Test(key_ring_read, takes_up_to_256_keys, .init = setup, .fini = teardown)
{
    for (int count = 256; count <= 257; count++) {
        struct key_ring ring;
        FILE *file = fopen(path, "w");

        cr_assert_not_null(file);
        fputs("{\"keys\": [", file);
        for (int i = 0; i < count; i++)
            fprintf(file,
                    "%s{\"id\": %d, \"client\": \"*\", \"secret\": \"%04d%.39s\", "
                    "\"sign_from\": \"2026-01-01T00:00:00Z\"}",
                    i > 0 ? "," : "", i % 256, i, SECRET_A);
        fputs("]}", file);
        cr_assert_eq(fclose(file), 0);
        cr_expect_eq(key_ring_read(path, &ring, NULL), count == 256 ? ST_OK : ST_INVALID);
        key_ring_clear(&ring);
    }
}

Test(key_ring_read, keeps_to_the_longest_secret, .init = setup, .fini = teardown)
{
    for (int chars = 170; chars <= 174; chars++) { /* 171 characters are 128 bytes */
        struct key_ring ring;
        FILE *file = fopen(path, "w");

        cr_assert_not_null(file);
        fputs("{\"keys\": [{\"id\": 1, \"client\": \"*\", \"secret\": \"", file);
        for (int i = 0; i < chars; i++)
            fputc('A', file);
        fputs("\", \"sign_from\": \"2026-01-01T00:00:00Z\"}]}", file);
        cr_assert_eq(fclose(file), 0);
        cr_expect_eq(key_ring_read(path, &ring, NULL), chars <= 171 ? ST_OK : ST_INVALID, "%d",
                     chars);
        key_ring_clear(&ring);
    }
}

Test(key_ring_read, refuses_files_that_it_cannot_trust_or_read, .init = setup, .fini = teardown)
{
    static const char one_key[] = "{\"keys\": [" KEY("1", SECRET_A) "]}";
    struct key_ring ring;
    struct error err = {0};

    text_write(one_key, strlen(one_key));
    cr_assert_eq(chmod(path, 0644), 0);
    cr_expect_eq(key_ring_read(path, &ring, &err), ST_INVALID);
    cr_expect_not_null(strstr(err.text, "0644"));
    cr_assert_eq(chmod(path, 0640), 0);
    cr_expect_eq(key_ring_read(path, &ring, NULL), ST_OK);
    key_ring_clear(&ring);
    cr_assert_eq(truncate(path, CONFIG_FILE_BYTES_MAX + 1), 0);
    cr_expect_eq(key_ring_read(path, &ring, NULL), ST_TOO_LARGE);
    cr_expect_eq(key_ring_read("/nonexistent", &ring, NULL), ST_NOT_FOUND);
    cr_expect_eq(key_ring_read("/tmp", &ring, NULL), ST_IO);
}

Test(key_ring_print, says_when_it_could_not_write, .init = setup, .fini = teardown)
{
    struct signing_key key = key_of(1, "*", KEY_SECRET_BYTES_MIN);
    FILE *full = fopen("/dev/full", "w");

    cr_assert_not_null(full);
    cr_expect_eq(key_ring_print(full, &(struct key_ring){.keys = &key, .keys_count = 1}, NULL),
                 ST_IO);
    fclose(full);
}

/* ---- keys of one event ---- */

Test(event_keys_print, writes_what_event_keys_read_takes, .init = setup, .fini = teardown)
{
    struct event_key keys[] = {
        {.key_id = 3, .event_id = "evt-003", .verify_until_s = KEY_VERIFY_FOR_EVER},
        {.key_id = 9, .event_id = "evt-003", .verify_until_s = JANUARY_2026_S}};
    struct event_keys const list = {.keys = keys, .count = 2};
    struct event_keys read;
    FILE *file = fopen(path, "w");
    struct error err = {0};

    memset(keys[0].bytes, 0xFB, EVENT_KEY_BYTES);
    cr_assert_not_null(file);
    cr_assert_eq(event_keys_print(file, &list, NULL), ST_OK);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(event_keys_read(path, &read, &err), ST_OK, "%s", err.text);
    cr_assert_eq(read.count, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(read.keys[i].key_id, keys[i].key_id);
        cr_expect_str_eq(read.keys[i].event_id, "evt-003");
        cr_expect_arr_eq(read.keys[i].bytes, keys[i].bytes, EVENT_KEY_BYTES);
        cr_expect_eq(read.keys[i].verify_until_s, keys[i].verify_until_s);
    }
    event_keys_clear(&read);
    cr_expect_null(read.keys);
}

#define EVENT_KEY(id, key) "{\"key_id\": " id ", \"key\": \"" key "\"}"

static const struct {
    const char *text, *message;
} BAD_EVENT_KEYS[] = {
    {"{\"keys\": [" EVENT_KEY("1", SECRET_A) "]}", "/event_id: is required"},
    {"{\"event_id\": \"a b\", \"keys\": [" EVENT_KEY("1", SECRET_A) "]}", "/event_id: must be"},
    {"{\"event_id\": \"e\"}", "/keys: is required"},
    {"{\"event_id\": \"e\", \"keys\": []}", "/keys: must be an array"},
    {"{\"event_id\": \"e\", \"key\": 1, \"keys\": []}", "/key: there is no such member"},
    {"{\"event_id\": \"e\", \"keys\": [{\"id\": 1}]}", "/keys/0/id: there is no such member"},
    {"{\"event_id\": \"e\", \"keys\": [{\"key_id\": 1}]}", "/keys/0/key: is required"},
    {"{\"event_id\": \"e\", \"keys\": [" EVENT_KEY("1", SECRET_SHORT) "]}",
     "/keys/0/key: must be 32 bytes"},
    {"{\"event_id\": \"e\", \"keys\": [" EVENT_KEY("1", SECRET_A "A") "]}",
     "/keys/0/key: must be 32 bytes"},
    {"{\"event_id\": \"e\", \"keys\": [" EVENT_KEY("1", SECRET_A) "," EVENT_KEY("1", SECRET_B) "]}",
     "/keys/1/key_id: is that of an earlier key"},
};

Test(event_keys_read, names_file_place_and_rule, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof BAD_EVENT_KEYS / sizeof *BAD_EVENT_KEYS; i++) {
        struct event_keys keys;
        struct error err = {0};

        text_write(BAD_EVENT_KEYS[i].text, strlen(BAD_EVENT_KEYS[i].text));
        cr_expect_eq(event_keys_read(path, &keys, &err), ST_INVALID, "%s", BAD_EVENT_KEYS[i].text);
        cr_expect_null(keys.keys);
        cr_expect_not_null(strstr(err.text, BAD_EVENT_KEYS[i].message), "%s: %s",
                           BAD_EVENT_KEYS[i].text, err.text);
    }
}

/* ---- verdicts ---- */

static const struct {
    const char *name;
    enum token_verdict verdict;
    bool has_from, has_until;
    int64_t now_s; /* after minute 0 of a token */
    const char *line;
} VERDICT_ROWS[] = {
    {"refused", TOKEN_BAD_MAC, false, false, 0, "{\"valid\":false,\"reason\":\"bad_mac\"}\n"},
    {"no window", TOKEN_OK, false, false, 0,
     "{\"valid\":true,\"event_id\":\"e\",\"ticket_id\":\"\\\"\xc5\x81\",\"issue\":3,\"key_id\":7,"
     "\"in_window\":true}\n"},
    {"before it", TOKEN_OK, true, true, 59,
     "{\"valid\":true,\"event_id\":\"e\",\"ticket_id\":\"\\\"\xc5\x81\",\"issue\":3,\"key_id\":7,"
     "\"valid_from\":\"2020-01-01T00:01:00Z\",\"valid_until\":\"2020-01-01T00:02:00Z\","
     "\"in_window\":false}\n"},
    {"its first second", TOKEN_OK, true, false, 60,
     "{\"valid\":true,\"event_id\":\"e\",\"ticket_id\":\"\\\"\xc5\x81\",\"issue\":3,\"key_id\":7,"
     "\"valid_from\":\"2020-01-01T00:01:00Z\",\"in_window\":true}\n"},
    {"its last second", TOKEN_OK, false, true, 119,
     "{\"valid\":true,\"event_id\":\"e\",\"ticket_id\":\"\\\"\xc5\x81\",\"issue\":3,\"key_id\":7,"
     "\"valid_until\":\"2020-01-01T00:02:00Z\",\"in_window\":true}\n"},
    {"after it", TOKEN_OK, false, true, 120,
     "{\"valid\":true,\"event_id\":\"e\",\"ticket_id\":\"\\\"\xc5\x81\",\"issue\":3,\"key_id\":7,"
     "\"valid_until\":\"2020-01-01T00:02:00Z\",\"in_window\":false}\n"},
};

Test(verdict_print, prints_one_object_a_line, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof VERDICT_ROWS / sizeof *VERDICT_ROWS; i++) {
        struct token_claims const claims = {.key_id = 7,
                                            .issue = 3,
                                            .event_id_len = 1,
                                            .ticket_id_len = 3,
                                            .event_id = "e",
                                            .ticket_id = "\"\xc5\x81",
                                            .has_valid_from = VERDICT_ROWS[i].has_from,
                                            .has_valid_until = VERDICT_ROWS[i].has_until,
                                            .valid_from_min = 1,
                                            .valid_until_min = 2};
        char *line = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&line, &len);

        cr_assert_not_null(out);
        cr_expect_eq(verdict_print(out, VERDICT_ROWS[i].verdict, &claims,
                                   TOKEN_EPOCH_S + VERDICT_ROWS[i].now_s, NULL),
                     ST_OK);
        fclose(out);
        cr_expect_str_eq(line, VERDICT_ROWS[i].line, "%s: %s", VERDICT_ROWS[i].name, line);
        free(line);
    }
}
