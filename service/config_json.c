#include "service/config_json.h"

#include "domain/civil_time.h"
#include "domain/id.h"
#include "domain/utf8.h"
#include "service/batch_json.h"
#include "service/file.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    POINTER_BYTES_MAX = 192,
    NAME_SHOWN_BYTES_MAX = 64, /* of an unknown member's name in a message */
    TIME_TEXT_BYTES_MAX = 40,
    SECRET_CHARS_MAX = (KEY_SECRET_BYTES_MAX * 8 + 5) / 6,
    EVENT_KEY_CHARS = (EVENT_KEY_BYTES * 8 + 5) / 6,
    MEMBER_VALUES_MAX = 64, /* of an array in the configuration file */
};

/*
 * One parse by one thread. The first refusal is final, for the reason given in batch_json.c: else
 * jansson would go on with a token that lacks a character, and a key with it.
 */
static _Thread_local struct {
    bool is_on;
    bool has_memory_ended;
} parsing;

void *config_json_malloc(size_t bytes)
{
    void *block = parsing.has_memory_ended ? NULL : malloc(bytes);

    if (block == NULL)
        parsing.has_memory_ended = parsing.is_on;
    return block;
}

void config_json_free(void *block)
{
    if (block != NULL)
        explicit_bzero(block, malloc_usable_size(block));
    free(block);
}

void config_json_start(void)
{
    json_set_alloc_funcs(config_json_malloc, config_json_free);
    json_object_seed(0);
}

/* ---- where a fault is ---- */

struct place {
    const char *file;
    char pointer[POINTER_BYTES_MAX]; /* JSON Pointer (RFC 6901), shortened where it is very long */
};

static struct place place_of(const char *file)
{
    return (struct place){.file = file};
}

static struct place place_at(const struct place *place, size_t index)
{
    struct place inner = *place;
    size_t const len = strlen(inner.pointer);

    snprintf(inner.pointer + len, sizeof inner.pointer - len, "/%zu", index);
    return inner;
}

/* Names come from the file: they are cut, escaped, and kept on one line. */
static struct place place_in(const struct place *place, const char *name)
{
    struct place inner = *place;
    size_t const shown =
        utf8_prefix((struct text){.data = name, .len = strlen(name)}, NAME_SHOWN_BYTES_MAX);
    size_t len = strlen(inner.pointer);

    assert(len + 2 + 2 * shown < sizeof inner.pointer);
    inner.pointer[len++] = '/';
    for (size_t i = 0; i < shown; i++) {
        unsigned char const c = (unsigned char)name[i];

        if (c == '~' || c == '/') {
            inner.pointer[len++] = '~';
            inner.pointer[len++] = c == '~' ? '0' : '1';
        } else {
            inner.pointer[len++] = c < 0x20 || c == 0x7F ? '?' : name[i];
        }
    }
    inner.pointer[len] = '\0';
    return inner;
}

static enum status refuse(const struct place *place, const char *rule, struct error *err)
{
    return error_set(err, ST_INVALID, "%s: %s: %s", place->file,
                     place->pointer[0] != '\0' ? place->pointer : "the whole text", rule);
}

static enum status refuse_member(const struct place *place, const char *name, const char *rule,
                                 struct error *err)
{
    struct place const inner = place_in(place, name);

    return refuse(&inner, rule, err);
}

/* ---- documents ---- */

/* jansson's own sentence quotes the text around the fault, which may be a secret. */
static const char *syntax_fault(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_premature_end_of_input:
        return "ends too early";
    case json_error_end_of_input_expected:
        return "more text after its end";
    case json_error_invalid_utf8:
        return "not UTF-8";
    case json_error_duplicate_key:
        return "the same member twice";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "U+0000 in a text";
    case json_error_stack_overflow:
        return "nested too deep";
    case json_error_numeric_overflow:
        return "a number too large";
    default:
        return "not JSON";
    }
}

static enum status parse(const char *path, const struct bytes *text, json_t **root,
                         struct error *err)
{
    json_error_t error = {0};
    bool has_memory_ended;

    parsing.is_on = true;
    *root = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, &error);
    has_memory_ended = parsing.has_memory_ended;
    parsing.is_on = parsing.has_memory_ended = false;
    if (has_memory_ended) {
        json_decref(*root);
        *root = NULL;
        return error_set(err, ST_NO_MEMORY, "%s: parsing it", path);
    }
    if (*root != NULL)
        return ST_OK;
    return error_set(err, ST_INVALID, "%s: line %d, column %d: %s", path, error.line, error.column,
                     syntax_fault(&error));
}

static enum status secret_document_read(const char *path, json_t **root, struct error *err)
{
    struct bytes text = {0};
    enum status st = file_read_secret(path, CONFIG_FILE_BYTES_MAX, &text, err);

    if (st == ST_OK)
        st = parse(path, &text, root, err);
    file_secret_clear(&text);
    return st;
}

static enum status document_read(const char *path, json_t **root, struct error *err)
{
    struct bytes text = {0};
    enum status st = file_read(path, CONFIG_FILE_BYTES_MAX, &text, err);

    if (st == ST_OK)
        st = parse(path, &text, root, err);
    bytes_clear(&text);
    return st;
}

/* ---- members ---- */

static bool is_known(const char *name, const char *const *known)
{
    for (; *known != NULL; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}

/* An object with no members but the known ones. */
static enum status object_check(const struct place *place, json_t *value, const char *const *known,
                                struct error *err)
{
    const char *name;
    json_t *member;

    if (!json_is_object(value))
        return refuse(place, "must be an object", err);
    json_object_foreach(value, name, member)
    {
        if (!is_known(name, known))
            return refuse_member(place, name, "there is no such member", err);
    }
    return ST_OK;
}

static enum status text_member(const struct place *place, json_t *object, const char *name,
                               const char **text, struct error *err)
{
    json_t *value = json_object_get(object, name);

    if (value == NULL)
        return refuse_member(place, name, "is required", err);
    *text = json_string_value(value);
    return *text != NULL ? ST_OK : refuse_member(place, name, "must be a string", err);
}

static enum status key_id_member(const struct place *place, json_t *object, const char *name,
                                 uint8_t *id, struct error *err)
{
    json_t *value = json_object_get(object, name);

    if (value == NULL)
        return refuse_member(place, name, "is required", err);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) >= KEYS_MAX)
        return refuse_member(place, name, "must be an integer from 0 to 255", err);
    *id = (uint8_t)json_integer_value(value);
    return ST_OK;
}

static enum status client_member(const struct place *place, json_t *object,
                                 char client[KEY_CLIENT_BYTES_MAX + 1], struct error *err)
{
    const char *text = NULL;
    enum status st = text_member(place, object, "client", &text, err);

    if (st != ST_OK)
        return st;
    if (strcmp(text, "*") != 0 && !id_is_event((struct text){.data = text, .len = strlen(text)}))
        return refuse_member(place, "client", "must be \"*\" or 1 to 64 of A-Z a-z 0-9 . _ : -",
                             err);
    snprintf(client, KEY_CLIENT_BYTES_MAX + 1, "%s", text);
    return ST_OK;
}

static enum status secret_member(const struct place *place, json_t *object, struct signing_key *key,
                                 struct error *err)
{
    const char *text = NULL;
    enum status st = text_member(place, object, "secret", &text, err);

    if (st != ST_OK)
        return st;
    if (strlen(text) > SECRET_CHARS_MAX ||
        !base64url_read(text, strlen(text), key->secret, &key->secret_len) ||
        key->secret_len < KEY_SECRET_BYTES_MIN)
        return refuse_member(place, "secret",
                             "must be 32 to 128 bytes as base64url without padding", err);
    return ST_OK;
}

static enum status time_member(const struct place *place, json_t *object, const char *name,
                               int64_t *seconds, struct error *err)
{
    const char *text = NULL;
    struct civil_time time = {0};
    enum civil_time_fault fault;
    enum status st = text_member(place, object, name, &text, err);

    if (st != ST_OK)
        return st;
    fault = civil_time_read((struct text){.data = text, .len = strlen(text)}, &time);
    if (fault != CIVIL_TIME_OK)
        return refuse_member(place, name, civil_time_fault_reason(fault), err);
    *seconds = time.seconds;
    return ST_OK;
}

static enum status verify_until_member(const struct place *place, json_t *object,
                                       int64_t *verify_until_s, struct error *err)
{
    *verify_until_s = KEY_VERIFY_FOR_EVER;
    if (json_object_get(object, "verify_until") == NULL)
        return ST_OK;
    return time_member(place, object, "verify_until", verify_until_s, err);
}

/* The array "keys": 1..KEYS_MAX entries. */
static enum status keys_member(const struct place *place, json_t *root, json_t **keys,
                               struct error *err)
{
    *keys = json_object_get(root, "keys");
    if (*keys == NULL)
        return refuse_member(place, "keys", "is required", err);
    if (!json_is_array(*keys) || json_array_size(*keys) < 1 || json_array_size(*keys) > KEYS_MAX)
        return refuse_member(place, "keys", "must be an array of 1 to 256 keys", err);
    return ST_OK;
}

/* ---- key rings ---- */

static enum status key_read(const struct place *place, json_t *object, struct signing_key *key,
                            struct error *err)
{
    static const char *const known[] = {"id",        "client",       "secret",
                                        "sign_from", "verify_until", NULL};
    enum status st = object_check(place, object, known, err);

    if (st == ST_OK)
        st = key_id_member(place, object, "id", &key->id, err);
    if (st == ST_OK)
        st = client_member(place, object, key->client, err);
    if (st == ST_OK)
        st = secret_member(place, object, key, err);
    if (st == ST_OK)
        st = time_member(place, object, "sign_from", &key->sign_from_s, err);
    if (st == ST_OK)
        st = verify_until_member(place, object, &key->verify_until_s, err);
    return st;
}

static enum status ring_keys_read(const struct place *place, json_t *array, struct key_ring *ring,
                                  struct error *err)
{
    enum status st = ST_OK;

    ring->keys = calloc(json_array_size(array), sizeof *ring->keys);
    if (ring->keys == NULL)
        return error_set(err, ST_NO_MEMORY, "%s: a key ring", place->file);
    ring->keys_count = json_array_size(array);
    for (size_t i = 0; st == ST_OK && i < ring->keys_count; i++) {
        struct place const inner = place_at(place, i);

        st = key_read(&inner, json_array_get(array, i), &ring->keys[i], err);
    }
    return st;
}

/* The rules between keys name key ids; the file is what they lack. */
static enum status ring_check(const char *path, const struct key_ring *ring, struct error *err)
{
    struct error why = {0};
    enum status st = key_ring_check(ring, &why);

    return st == ST_OK ? ST_OK : error_set(err, st, "%s: %s", path, why.text);
}

static enum status ring_from_json(const char *path, json_t *root, struct key_ring *ring,
                                  struct error *err)
{
    static const char *const known[] = {"keys", NULL};
    struct place const place = place_of(path);
    struct place const keys_place = place_in(&place, "keys");
    json_t *keys = NULL;
    enum status st = object_check(&place, root, known, err);

    if (st == ST_OK)
        st = keys_member(&place, root, &keys, err);
    if (st == ST_OK)
        st = ring_keys_read(&keys_place, keys, ring, err);
    if (st == ST_OK)
        st = ring_check(path, ring, err);
    return st;
}

enum status key_ring_read(const char *path, struct key_ring *ring, struct error *err)
{
    json_t *root = NULL;
    enum status st;

    *ring = (struct key_ring){0};
    st = secret_document_read(path, &root, err);
    if (st == ST_OK)
        st = ring_from_json(path, root, ring, err);
    json_decref(root);
    if (st != ST_OK)
        key_ring_clear(ring);
    return st;
}

static void time_text(int64_t seconds, char text[TIME_TEXT_BYTES_MAX])
{
    time_t const time = seconds;
    struct tm utc = {0};

    gmtime_r(&time, &utc);
    strftime(text, TIME_TEXT_BYTES_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static void verify_until_print(FILE *out, int64_t verify_until_s)
{
    char text[TIME_TEXT_BYTES_MAX];

    if (verify_until_s == KEY_VERIFY_FOR_EVER)
        return;
    time_text(verify_until_s, text);
    fprintf(out, ", \"verify_until\": \"%s\"", text);
}

static enum status flush(FILE *out, struct error *err)
{
    if (fflush(out) != 0 || ferror(out))
        return error_set(err, ST_IO, "writing the answer: %s", strerror(errno));
    return ST_OK;
}

/* Nothing here needs an escape: client names have a rule of their own (key_ring_check). */
enum status key_ring_print(FILE *out, const struct key_ring *ring, struct error *err)
{
    fputs("{\"keys\": [", out);
    for (size_t i = 0; i < ring->keys_count; i++) {
        const struct signing_key *key = &ring->keys[i];
        char secret[SECRET_CHARS_MAX + 1], sign_from[TIME_TEXT_BYTES_MAX];

        base64url_write(key->secret, key->secret_len, secret);
        time_text(key->sign_from_s, sign_from);
        fprintf(out, "%s\n  {\"id\": %d, \"client\": \"%s\", \"secret\": \"%s\",", i > 0 ? "," : "",
                key->id, key->client, secret);
        fprintf(out, " \"sign_from\": \"%s\"", sign_from);
        verify_until_print(out, key->verify_until_s);
        fputs("}", out);
        explicit_bzero(secret, sizeof secret);
    }
    fputs("\n]}\n", out);
    return flush(out, err);
}

/* ---- keys of one event ---- */

void event_keys_clear(struct event_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        event_key_clear(&keys->keys[i]);
    free(keys->keys);
    *keys = (struct event_keys){0};
}

static enum status event_key_member(const struct place *place, json_t *object,
                                    struct event_key *key, struct error *err)
{
    const char *text = NULL;
    size_t len = 0;
    enum status st = text_member(place, object, "key", &text, err);

    if (st != ST_OK)
        return st;
    if (strlen(text) != EVENT_KEY_CHARS || !base64url_read(text, strlen(text), key->bytes, &len))
        return refuse_member(place, "key", "must be 32 bytes as base64url without padding", err);
    assert(len == EVENT_KEY_BYTES);
    return ST_OK;
}

static enum status event_key_read(const struct place *place, json_t *object, struct event_key *key,
                                  struct error *err)
{
    static const char *const known[] = {"key_id", "key", "verify_until", NULL};
    enum status st = object_check(place, object, known, err);

    if (st == ST_OK)
        st = key_id_member(place, object, "key_id", &key->key_id, err);
    if (st == ST_OK)
        st = event_key_member(place, object, key, err);
    if (st == ST_OK)
        st = verify_until_member(place, object, &key->verify_until_s, err);
    return st;
}

static bool has_key_id(const struct event_key *keys, size_t count, uint8_t key_id)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i].key_id == key_id)
            return true;
    return false;
}

static enum status event_keys_list_read(const struct place *place, json_t *array,
                                        const char *event_id, struct event_keys *keys,
                                        struct error *err)
{
    enum status st = ST_OK;

    keys->keys = calloc(json_array_size(array), sizeof *keys->keys);
    if (keys->keys == NULL)
        return error_set(err, ST_NO_MEMORY, "%s: the keys of an event", place->file);
    keys->count = json_array_size(array);
    for (size_t i = 0; st == ST_OK && i < keys->count; i++) {
        struct place const inner = place_at(place, i);
        struct event_key *key = &keys->keys[i];

        snprintf(key->event_id, sizeof key->event_id, "%s", event_id);
        st = event_key_read(&inner, json_array_get(array, i), key, err);
        if (st == ST_OK && has_key_id(keys->keys, i, key->key_id))
            st = refuse_member(&inner, "key_id", "is that of an earlier key", err);
    }
    return st;
}

static enum status event_id_member(const struct place *place, json_t *root, const char **event_id,
                                   struct error *err)
{
    enum status st = text_member(place, root, "event_id", event_id, err);

    if (st == ST_OK && !id_is_event((struct text){.data = *event_id, .len = strlen(*event_id)}))
        st = refuse_member(place, "event_id", "must be 1 to 64 of A-Z a-z 0-9 . _ : -", err);
    return st;
}

static enum status event_keys_from_json(const char *path, json_t *root, struct event_keys *keys,
                                        struct error *err)
{
    static const char *const known[] = {"event_id", "keys", NULL};
    struct place const place = place_of(path);
    struct place const keys_place = place_in(&place, "keys");
    const char *event_id = NULL;
    json_t *array = NULL;
    enum status st = object_check(&place, root, known, err);

    if (st == ST_OK)
        st = event_id_member(&place, root, &event_id, err);
    if (st == ST_OK)
        st = keys_member(&place, root, &array, err);
    if (st == ST_OK)
        st = event_keys_list_read(&keys_place, array, event_id, keys, err);
    return st;
}

enum status event_keys_read(const char *path, struct event_keys *keys, struct error *err)
{
    json_t *root = NULL;
    enum status st;

    *keys = (struct event_keys){0};
    st = secret_document_read(path, &root, err);
    if (st == ST_OK)
        st = event_keys_from_json(path, root, keys, err);
    json_decref(root);
    if (st != ST_OK)
        event_keys_clear(keys);
    return st;
}

enum status event_keys_print(FILE *out, const struct event_keys *keys, struct error *err)
{
    assert(keys->count > 0);
    fprintf(out, "{\"event_id\": \"%s\", \"keys\": [", keys->keys[0].event_id);
    for (size_t i = 0; i < keys->count; i++) {
        char key[EVENT_KEY_CHARS + 1];

        base64url_write(keys->keys[i].bytes, EVENT_KEY_BYTES, key);
        fprintf(out, "%s\n  {\"key_id\": %d, \"key\": \"%s\"", i > 0 ? "," : "",
                keys->keys[i].key_id, key);
        verify_until_print(out, keys->keys[i].verify_until_s);
        fputs("}", out);
        explicit_bzero(key, sizeof key);
    }
    fputs("\n]}\n", out);
    return flush(out, err);
}

/* ---- verdicts ---- */

static int64_t minute_s(uint32_t minutes)
{
    return TOKEN_EPOCH_S + INT64_C(60) * minutes;
}

static bool is_in_window(const struct token_claims *claims, int64_t now_s)
{
    return (!claims->has_valid_from || now_s >= minute_s(claims->valid_from_min)) &&
           (!claims->has_valid_until || now_s < minute_s(claims->valid_until_min));
}

/* false: no memory. Here and below, what json_...() could not make is refused by set_new. */
static bool minute_set(json_t *object, const char *name, uint32_t minutes)
{
    char text[TIME_TEXT_BYTES_MAX];

    time_text(minute_s(minutes), text);
    return json_object_set_new(object, name, json_string(text)) == 0;
}

static bool claims_set(json_t *object, const struct token_claims *claims, int64_t now_s)
{
    return json_object_set_new(object, "event_id", json_string(claims->event_id)) == 0 &&
           json_object_set_new(object, "ticket_id", json_string(claims->ticket_id)) == 0 &&
           json_object_set_new(object, "issue", json_integer(claims->issue)) == 0 &&
           json_object_set_new(object, "key_id", json_integer(claims->key_id)) == 0 &&
           (!claims->has_valid_from || minute_set(object, "valid_from", claims->valid_from_min)) &&
           (!claims->has_valid_until ||
            minute_set(object, "valid_until", claims->valid_until_min)) &&
           json_object_set_new(object, "in_window", json_boolean(is_in_window(claims, now_s))) == 0;
}

static bool reason_set(json_t *object, enum token_verdict verdict)
{
    return json_object_set_new(object, "reason", json_string(token_verdict_name(verdict))) == 0;
}

enum status verdict_print(FILE *out, enum token_verdict verdict, const struct token_claims *claims,
                          int64_t now_s, struct error *err)
{
    bool const is_valid = verdict == TOKEN_OK;
    json_t *object = json_object();
    bool is_made = json_object_set_new(object, "valid", json_boolean(is_valid)) == 0;

    if (is_made)
        is_made = is_valid ? claims_set(object, claims, now_s) : reason_set(object, verdict);
    if (is_made)
        is_made = json_dumpf(object, out, JSON_COMPACT) == 0;
    json_decref(object);
    if (!is_made && !ferror(out))
        return error_set(err, ST_NO_MEMORY, "a verdict");
    fputc('\n', out);
    return flush(out, err);
}

/* ---- the configuration file ---- */

struct member_values {
    const char *texts[MEMBER_VALUES_MAX];
    char integer[24];
};

static enum status list_values(const struct place *place, json_t *array,
                               struct member_values *values, struct error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        struct place const inner = place_at(place, i);

        if (i == MEMBER_VALUES_MAX)
            return refuse(place, "more than 64 values", err);
        values->texts[i] = json_string_value(json_array_get(array, i));
        if (values->texts[i] == NULL)
            return refuse(&inner, "must be a string", err);
    }
    return ST_OK;
}

static enum status member_values(const struct place *place, json_t *value,
                                 struct member_values *values, struct config_member *member,
                                 struct error *err)
{
    member->values = values->texts;
    member->values_count = 1;
    if (json_is_array(value)) {
        member->is_list = true;
        member->values_count = json_array_size(value);
        return list_values(place, value, values, err);
    }
    if (json_is_string(value)) {
        values->texts[0] = json_string_value(value);
        return ST_OK;
    }
    if (!json_is_integer(value))
        return refuse(place, "must be a string, an integer or an array of strings", err);
    snprintf(values->integer, sizeof values->integer, "%" JSON_INTEGER_FORMAT,
             json_integer_value(value));
    values->texts[0] = values->integer;
    return ST_OK;
}

struct member_reader {
    enum status (*member)(void *user, const struct config_member *member, struct error *err);
    void *user;
};

static enum status members_read(const char *path, json_t *root, const struct member_reader *reader,
                                struct error *err)
{
    struct place const place = place_of(path);
    const char *name;
    json_t *value;
    enum status st = ST_OK;

    if (!json_is_object(root))
        return refuse(&place, "must be an object", err);
    json_object_foreach(root, name, value)
    {
        struct place const inner = place_in(&place, name);
        struct config_member member = {.name = name, .pointer = inner.pointer};
        struct member_values values = {0};

        st = member_values(&inner, value, &values, &member, err);
        if (st == ST_OK)
            st = reader->member(reader->user, &member, err);
        if (st != ST_OK)
            break;
    }
    return st;
}

enum status config_file_read(const char *path,
                             enum status (*member)(void *user, const struct config_member *member,
                                                   struct error *err),
                             void *user, struct error *err)
{
    struct member_reader const reader = {.member = member, .user = user};
    json_t *root = NULL;
    enum status st = document_read(path, &root, err);

    if (st == ST_OK)
        st = members_read(path, root, &reader, err);
    json_decref(root);
    return st;
}

/* ---- clients ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum status sha256_member(const struct place *place, json_t *object,
                                 uint8_t sha256[SHA256_BYTES], struct error *err)
{
    const char *text = NULL;
    enum status st = text_member(place, object, "key_sha256", &text, err);

    if (st != ST_OK)
        return st;
    assert(text != NULL);
    if (strlen(text) != 2 * SHA256_BYTES)
        return refuse_member(place, "key_sha256", "must be 64 hexadecimal digits", err);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int const high = hex_value(text[2 * i]);
        int const low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return refuse_member(place, "key_sha256", "must be 64 hexadecimal digits", err);
        sha256[i] = (uint8_t)(high << 4 | low);
    }
    return ST_OK;
}

static unsigned scope_from_name(const char *name)
{
    static const struct {
        const char *name;
        enum client_scope scope;
    } SCOPES[] = {{"render", SCOPE_RENDER}, {"verify", SCOPE_VERIFY}, {"admin", SCOPE_ADMIN}};

    for (size_t i = 0; name != NULL && i < sizeof SCOPES / sizeof *SCOPES; i++)
        if (strcmp(SCOPES[i].name, name) == 0)
            return SCOPES[i].scope;
    return 0;
}

static enum status scopes_member(const struct place *place, json_t *object, unsigned *scopes,
                                 struct error *err)
{
    json_t *array = json_object_get(object, "scopes");
    json_t *value;
    size_t i;

    if (!json_is_array(array) || json_array_size(array) == 0)
        return refuse_member(place, "scopes", "must be an array of scopes", err);
    json_array_foreach(array, i, value)
    {
        unsigned const scope = scope_from_name(json_string_value(value));

        if (scope == 0)
            return refuse_member(place, "scopes", "knows \"render\", \"verify\" and \"admin\"",
                                 err);
        *scopes |= scope;
    }
    return ST_OK;
}

static enum status client_name_member(const struct place *place, json_t *object,
                                      char name[KEY_CLIENT_BYTES_MAX + 1], struct error *err)
{
    const char *text = NULL;
    enum status st = text_member(place, object, "name", &text, err);

    if (st != ST_OK)
        return st;
    assert(text != NULL);
    if (!id_is_event((struct text){.data = text, .len = strlen(text)}))
        return refuse_member(place, "name", "must be 1 to 64 of A-Z a-z 0-9 . _ : -", err);
    snprintf(name, KEY_CLIENT_BYTES_MAX + 1, "%s", text);
    return ST_OK;
}

static enum status client_read(const struct place *place, json_t *object, struct client *client,
                               struct error *err)
{
    static const char *const KNOWN[] = {"name", "key_sha256", "scopes", NULL};
    enum status st = object_check(place, object, KNOWN, err);

    if (st == ST_OK)
        st = client_name_member(place, object, client->name, err);
    if (st == ST_OK)
        st = sha256_member(place, object, client->key_sha256, err);
    if (st == ST_OK)
        st = scopes_member(place, object, &client->scopes, err);
    return st;
}

static enum status client_check(const struct place *place, const struct client_list *list,
                                size_t last, struct error *err)
{
    for (size_t i = 0; i < last; i++) {
        if (strcmp(list->clients[i].name, list->clients[last].name) == 0)
            return refuse_member(place, "name", "is another client's too", err);
        if (memcmp(list->clients[i].key_sha256, list->clients[last].key_sha256, SHA256_BYTES) == 0)
            return refuse_member(place, "key_sha256", "is another client's too", err);
    }
    return ST_OK;
}

static enum status clients_array_read(const struct place *place, json_t *array,
                                      struct client_list *list, struct error *err)
{
    size_t const count = json_array_size(array);
    enum status st = ST_OK;

    if (!json_is_array(array) || count == 0 || count > CLIENTS_MAX)
        return refuse(place, "must be an array of 1 to 1000 clients", err);
    list->clients = calloc(count, sizeof *list->clients);
    if (list->clients == NULL)
        return error_set(err, ST_NO_MEMORY, "the list of clients");
    for (size_t i = 0; st == ST_OK && i < count; i++) {
        struct place const at = place_at(place, i);

        st = client_read(&at, json_array_get(array, i), &list->clients[i], err);
        if (st == ST_OK)
            st = client_check(&at, list, i, err);
        list->count++;
    }
    return st;
}

enum status client_list_read(const char *path, struct client_list *list, struct error *err)
{
    static const char *const KNOWN[] = {"clients", NULL};
    struct place const place = place_of(path);
    struct place const clients = place_in(&place, "clients");
    json_t *root = NULL;
    enum status st = secret_document_read(path, &root, err);

    if (st == ST_OK)
        st = object_check(&place, root, KNOWN, err);
    if (st == ST_OK)
        st = clients_array_read(&clients, json_object_get(root, "clients"), list, err);
    json_decref(root);
    if (st != ST_OK)
        client_list_clear(list);
    return st;
}

/* ---- layouts and labels ---- */

enum status file_problem_error(const char *path, const struct problem *problem, struct error *err)
{
    return error_set(err, ST_INVALID, "%s: %s: %s", path,
                     problem->pointer.len > 0 ? problem->pointer.data : "the whole text",
                     problem->detail.data);
}

static enum status file_error(const char *path, const struct problems *problems, size_t before,
                              struct error *err)
{
    if (before < problems->listed_count)
        return file_problem_error(path, &problems->listed[before], err);
    return error_set(err, ST_INVALID, "%s: breaks its rules", path);
}

static enum status content_write(json_t *root, struct bytes *content, struct error *err)
{
    size_t const flags = JSON_COMPACT | JSON_SORT_KEYS;
    size_t len;
    enum status st;

    (void)json_object_del(root, "$schema"); /* it may not be there */
    len = json_dumpb(root, NULL, 0, flags);
    st = len > 0 ? bytes_reserve(content, len, err) : error_set(err, ST_NO_MEMORY, "a layout");
    if (st != ST_OK)
        return st;
    content->len = json_dumpb(root, (char *)content->data, len, flags);
    return content->len == len ? ST_OK : error_set(err, ST_NO_MEMORY, "a layout");
}

enum status layout_file_read(const char *path, struct layout *layout, struct bytes *content,
                             struct problems *problems, struct error *err)
{
    size_t const before = problems->listed_count;
    json_t *root = NULL;
    enum status st = document_read(path, &root, err);

    if (st != ST_OK)
        return st;
    st = layout_read(&json_value_source, json_value(root), layout, problems, err);
    if (st == ST_OK)
        st = content_write(root, content, err);
    json_decref(root);
    if (st != ST_OK)
        layout_clear(layout);
    return st == ST_INVALID ? file_error(path, problems, before, err) : st;
}

enum status label_file_read(const char *path, struct label_set *labels, struct problems *problems,
                            struct error *err)
{
    size_t const before = problems->listed_count;
    json_t *root = NULL;
    enum status st = document_read(path, &root, err);

    if (st != ST_OK)
        return st;
    st = label_set_read(&json_value_source, json_value(root), labels, problems, err);
    json_decref(root);
    return st == ST_INVALID ? file_error(path, problems, before, err) : st;
}
