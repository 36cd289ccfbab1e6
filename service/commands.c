#include "service/commands.h"

#include "domain/civil_time.h"
#include "domain/id.h"
#include "service/config_json.h"
#include "service/file.h"
#include "service/resources.h"
#include "service/serve.h"
#include "workers/sign.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- exit codes ---- */

static const enum exit_code EXIT_CODES[ST_COUNT][STAGE_COUNT] = {
    /*                 setup         work */
    [ST_OK] = {EXIT_OK, EXIT_OK},
    [ST_INVALID] = {EXIT_USAGE, EXIT_REFUSED},
    [ST_TOO_LARGE] = {EXIT_USAGE, EXIT_REFUSED},
    [ST_NOT_FOUND] = {EXIT_USAGE, EXIT_USAGE},
    [ST_NO_KEY] = {EXIT_USAGE, EXIT_USAGE},
    [ST_BUSY] = {EXIT_SYSTEM, EXIT_SYSTEM},
    [ST_CANCELLED] = {EXIT_SYSTEM, EXIT_SYSTEM},
    [ST_TIMED_OUT] = {EXIT_SYSTEM, EXIT_SYSTEM},
    [ST_NO_MEMORY] = {EXIT_SYSTEM, EXIT_SYSTEM},
    [ST_IO] = {EXIT_USAGE, EXIT_SYSTEM}, /* a named file; what is read and written */
    [ST_LIBRARY] = {EXIT_SYSTEM, EXIT_SYSTEM},
};

enum exit_code exit_code_of(enum status status, enum command_stage stage)
{
    assert(status < ST_COUNT && stage < STAGE_COUNT);
    return EXIT_CODES[status][stage];
}

enum exit_code command_fail(const struct error *err, enum command_stage stage)
{
    fprintf(stderr, "ticketpress: %s\n", err->text);
    return exit_code_of(err->status, stage);
}

/* ---- commands and their options ---- */

enum option_id {
    OPTION_HELP,
    OPTION_CONFIG,
    OPTION_CLIENT,
    OPTION_OUTPUT,
    OPTION_LAYOUT,
    OPTION_EVENT,
    OPTION_EVENT_KEY,
    OPTION_AT,
    OPTION_MARKDOWN,
    OPTION_INSECURE,
    OPTION_COUNT
};

#define BIT(option) (1u << (option))

static const struct option {
    const char *name;
    char letter;       /* 0: no short form */
    const char *value; /* what stands for it in the help; NULL: a switch */
    const char *meaning;
} OPTIONS[OPTION_COUNT] = {
    [OPTION_HELP] = {"help", 'h', NULL, "this text"},
    [OPTION_CONFIG] = {"config", 0, "FILE", "settings as a JSON object"},
    [OPTION_CLIENT] = {"client", 0, "NAME", "whose keys of the ring"},
    [OPTION_OUTPUT] = {"output", 'o', "PATH", "where the document goes; -: standard output"},
    [OPTION_LAYOUT] = {"layout", 0, "FILE", "a layout to try: all tickets are printed with it"},
    [OPTION_EVENT] = {"event", 0, "ID", "the event"},
    [OPTION_EVENT_KEY] = {"event-key", 0, "FILE", "the keys of one event"},
    [OPTION_AT] = {"at", 0, "TIME", "judge by this time (RFC 3339) instead of now"},
    [OPTION_MARKDOWN] = {"markdown", 0, NULL, "as a table for the README"},
    [OPTION_INSECURE] = {"insecure-no-auth", 0, NULL,
                         "listen beyond loopback although everybody may call"},
};

enum { SETTING_OPTIONS_MAX = 128 };

struct arguments {
    const char *values[OPTION_COUNT]; /* "" for a switch; NULL where it was not given */
    struct setting_option settings[SETTING_OPTIONS_MAX];
    size_t settings_count;
    char **operands;
    int operands_count;
};

struct command {
    const char *name;
    const char *usage;
    const char *meaning;
    unsigned options;  /* BIT(OPTION_...) */
    unsigned settings; /* of enum setting_user; 0: takes no settings, nothing is read or started */
    int operands_min, operands_max; /* -1: any number */
    enum exit_code (*run)(const struct arguments *arguments, const struct settings *settings);
};

static enum exit_code run_render(const struct arguments *arguments,
                                 const struct settings *settings);
static enum exit_code run_verify(const struct arguments *arguments,
                                 const struct settings *settings);
static enum exit_code run_keygen(const struct arguments *arguments,
                                 const struct settings *settings);
static enum exit_code run_event_key(const struct arguments *arguments,
                                    const struct settings *settings);
static enum exit_code run_layouts(const struct arguments *arguments,
                                  const struct settings *settings);
static enum exit_code run_settings(const struct arguments *arguments,
                                   const struct settings *settings);
static enum exit_code run_version(const struct arguments *arguments,
                                  const struct settings *settings);

static enum exit_code run_serve(const struct arguments *arguments, const struct settings *settings);

static const struct command COMMANDS[] = {
    {.name = "serve",
     .usage = "[--listen ADDRESS] [--signing-keys FILE] [--client-keys FILE]",
     .meaning =
         "the service: batches over HTTP; without options on loopback, with a development key",
     .options = BIT(OPTION_HELP) | BIT(OPTION_CONFIG) | BIT(OPTION_INSECURE),
     .settings = USED_BY_SERVE,
     .run = run_serve},
    {.name = "render",
     .usage = "[--signing-keys FILE] [--workers N] BATCH.json -o OUT.pdf",
     .meaning = "a batch of tickets into one PDF with signed QR codes; -: standard input",
     .options = BIT(OPTION_HELP) | BIT(OPTION_CONFIG) | BIT(OPTION_CLIENT) | BIT(OPTION_OUTPUT) |
                BIT(OPTION_LAYOUT),
     .settings = USED_BY_RENDER,
     .operands_min = 1,
     .operands_max = 1,
     .run = run_render},
    {.name = "verify",
     .usage = "--signing-keys FILE|--event-key FILE TOKEN...",
     .meaning = "the claims of each token, or why it is refused; -: one a line on standard input",
     .options = BIT(OPTION_HELP) | BIT(OPTION_CONFIG) | BIT(OPTION_CLIENT) | BIT(OPTION_EVENT_KEY) |
                BIT(OPTION_AT),
     .settings = USED_BY_VERIFY,
     .operands_min = 1,
     .operands_max = -1,
     .run = run_verify},
    {.name = "keygen",
     .usage = "[--signing-keys FILE] [--client NAME]",
     .meaning = "a new key ring, or that of FILE with one key more, on standard output",
     .options = BIT(OPTION_HELP) | BIT(OPTION_CONFIG) | BIT(OPTION_CLIENT),
     .settings = USED_BY_KEYGEN,
     .run = run_keygen},
    {.name = "event-key",
     .usage = "--signing-keys FILE --event ID [--client NAME]",
     .meaning = "the keys by which the gates of one event can verify, on standard output",
     .options = BIT(OPTION_HELP) | BIT(OPTION_CONFIG) | BIT(OPTION_CLIENT) | BIT(OPTION_EVENT),
     .settings = USED_BY_EVENT_KEY,
     .run = run_event_key},
    {.name = "layouts",
     .usage = "check FILE...",
     .meaning = "whether layout files are sound, with the place of each fault",
     .options = BIT(OPTION_HELP),
     .operands_min = 2,
     .operands_max = -1,
     .run = run_layouts},
    {.name = "settings",
     .usage = "[--markdown]",
     .meaning = "all settings with their ranges and defaults",
     .options = BIT(OPTION_HELP) | BIT(OPTION_MARKDOWN),
     .run = run_settings},
    {.name = "version",
     .usage = "[--fonts PATH]...",
     .meaning = "name and version, and the hash of the fonts",
     .options = BIT(OPTION_HELP) | BIT(OPTION_CONFIG),
     .settings = USED_BY_VERSION,
     .run = run_version},
};
enum { COMMANDS_COUNT = sizeof COMMANDS / sizeof *COMMANDS };

static const struct command *command_find(const char *name)
{
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        if (strcmp(COMMANDS[i].name, name) == 0)
            return &COMMANDS[i];
    return NULL;
}

/* ---- help ---- */

static void print_program_help(FILE *out)
{
    fputs("usage: ticketpress COMMAND [OPTION...] [ARGUMENT...]\n\n", out);
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        fprintf(out, "  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].meaning);
    fputs(
        "\nticketpress COMMAND --help lists the options of a command. Each setting may also be\n"
        "a variable of the environment (TICKETPRESS_WORKERS=4) or a member of a JSON file named\n"
        "by --config or TICKETPRESS_CONFIG ({\"workers\": 4}); options go first, then variables.\n"
        "\nexit codes: 0 done, 1 input refused, 2 usage or settings, 3 system failure\n"
        "\nsettings:\n",
        out);
    settings_print_help(out, USED_BY_ALL);
}

static void print_option_help(FILE *out, const struct option *option)
{
    char text[64];

    snprintf(text, sizeof text, "%s %s", option->name, option->value != NULL ? option->value : "");
    if (option->letter != 0)
        fprintf(out, "  -%c, --%-18s %s\n", option->letter, text, option->meaning);
    else
        fprintf(out, "  --%-22s %s\n", text, option->meaning);
}

static void print_command_help(FILE *out, const struct command *command)
{
    fprintf(out, "usage: ticketpress %s %s\n\n%s\n\n", command->name, command->usage,
            command->meaning);
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((command->options & BIT(i)) != 0)
            print_option_help(out, &OPTIONS[i]);
    settings_print_help(out, command->settings);
}

/* ---- reading arguments ---- */

/* The arguments that are still to be read. */
struct queue {
    char **next;
    int count;
};

static const char *queue_take(struct queue *queue)
{
    assert(queue->count > 0);
    queue->count--;
    return *queue->next++;
}

/* What stands behind "=", else the next argument. */
static enum status value_take(struct queue *queue, const char *argument, const char *inline_value,
                              const char **value, struct error *err)
{
    if (inline_value != NULL)
        *value = inline_value;
    else if (queue->count > 0)
        *value = queue_take(queue);
    else
        return error_set(err, ST_INVALID, "%s: its value is missing", argument);
    return ST_OK;
}

static enum status option_read(struct queue *queue, const char *argument, int id,
                               const char *inline_value, struct arguments *arguments,
                               struct error *err)
{
    if (arguments->values[id] != NULL)
        return error_set(err, ST_INVALID, "--%s: given twice", OPTIONS[id].name);
    if (OPTIONS[id].value != NULL)
        return value_take(queue, argument, inline_value, &arguments->values[id], err);
    if (inline_value != NULL)
        return error_set(err, ST_INVALID, "--%s: takes no value", OPTIONS[id].name);
    arguments->values[id] = "";
    return ST_OK;
}

static enum status setting_read(struct queue *queue, const char *argument,
                                const struct setting *setting, const char *inline_value,
                                struct arguments *arguments, struct error *err)
{
    struct setting_option *given = &arguments->settings[arguments->settings_count];

    if (arguments->settings_count == SETTING_OPTIONS_MAX)
        return error_set(err, ST_INVALID, "more than %d settings", SETTING_OPTIONS_MAX);
    arguments->settings_count++;
    given->setting = setting;
    return value_take(queue, argument, inline_value, &given->value, err);
}

static int option_by_name(const struct command *command, const char *name, size_t len)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((command->options & BIT(i)) != 0 && strlen(OPTIONS[i].name) == len &&
            memcmp(OPTIONS[i].name, name, len) == 0)
            return i;
    return -1;
}

static int option_by_letter(const struct command *command, char letter)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((command->options & BIT(i)) != 0 && OPTIONS[i].letter == letter)
            return i;
    return -1;
}

static enum status unknown_option(const struct command *command, const char *argument, size_t len,
                                  struct error *err)
{
    return error_set(err, ST_INVALID, "%s: there is no option %.*s (see ticketpress %s --help)",
                     command->name, (int)len, argument, command->name);
}

static enum status long_read(const struct command *command, struct queue *queue,
                             const char *argument, struct arguments *arguments, struct error *err)
{
    const char *name = argument + 2;
    size_t const len = strcspn(name, "=");
    const char *inline_value = name[len] == '=' ? name + len + 1 : NULL;
    int const id = option_by_name(command, name, len);
    const struct setting *setting = setting_find(name, len);

    if (id >= 0)
        return option_read(queue, argument, id, inline_value, arguments, err);
    if (setting != NULL && (setting->users & command->settings) != 0)
        return setting_read(queue, argument, setting, inline_value, arguments, err);
    return unknown_option(command, argument, len + 2, err);
}

/* -o PATH or -oPATH. */
static enum status short_read(const struct command *command, struct queue *queue,
                              const char *argument, struct arguments *arguments, struct error *err)
{
    int const id = option_by_letter(command, argument[1]);

    if (id < 0)
        return unknown_option(command, argument, strlen(argument), err);
    return option_read(queue, argument, id, argument[2] != '\0' ? argument + 2 : NULL, arguments,
                       err);
}

static enum status operands_check(const struct command *command, const struct arguments *arguments,
                                  struct error *err)
{
    int const count = arguments->operands_count;

    if (arguments->values[OPTION_HELP] != NULL)
        return ST_OK;
    if (count < command->operands_min)
        return error_set(err, ST_INVALID, "%s: an argument is missing (see ticketpress %s --help)",
                         command->name, command->name);
    if (command->operands_max >= 0 && count > command->operands_max)
        return error_set(err, ST_INVALID, "%s: one argument too many: %s", command->name,
                         arguments->operands[command->operands_max]);
    return ST_OK;
}

/* Options and operands may be mixed; behind "--" all are operands. Operands are moved to the front
 * of argv, where they have room. */
static enum status arguments_read(const struct command *command, int argc, char **argv,
                                  struct arguments *arguments, struct error *err)
{
    struct queue queue = {.next = argv, .count = argc};
    bool is_options_end = false;
    enum status st = ST_OK;

    *arguments = (struct arguments){.operands = argv};
    while (st == ST_OK && queue.count > 0) {
        char **place = queue.next;
        const char *argument = queue_take(&queue);

        if (is_options_end || argument[0] != '-' || argument[1] == '\0')
            argv[arguments->operands_count++] = *place;
        else if (strcmp(argument, "--") == 0)
            is_options_end = true;
        else if (argument[1] == '-')
            st = long_read(command, &queue, argument, arguments, err);
        else
            st = short_read(command, &queue, argument, arguments, err);
    }
    return st == ST_OK ? operands_check(command, arguments, err) : st;
}

/* ---- serve ---- */

static enum exit_code run_serve(const struct arguments *arguments, const struct settings *settings)
{
    return command_serve(&(struct serve_options){
        .settings = settings, .is_insecure = arguments->values[OPTION_INSECURE] != NULL});
}

/* ---- render ---- */

static enum exit_code run_render(const struct arguments *arguments, const struct settings *settings)
{
    struct render_options const options = {
        .batch_path = arguments->operands[0],
        .output_path = arguments->values[OPTION_OUTPUT],
        .layout_path = arguments->values[OPTION_LAYOUT],
        .client = arguments->values[OPTION_CLIENT],
        .settings = settings,
    };
    struct error err = {0};

    if (options.output_path == NULL || options.output_path[0] == '\0') {
        error_set(&err, ST_INVALID, "render: --output is missing");
        return command_fail(&err, STAGE_SETUP);
    }
    return command_render(&options);
}

/* ---- keys ---- */

static enum status store_open(const struct settings *settings, struct key_store **store,
                              struct error *err)
{
    struct key_ring ring = {0};
    enum status st;

    if (settings->signing_keys == NULL)
        return error_set(err, ST_INVALID, "--signing-keys is missing");
    st = key_ring_read(settings->signing_keys, &ring, err);
    if (st == ST_OK)
        st = key_store_new_move(&ring, store, err);
    key_ring_clear(&ring);
    return st;
}

static enum exit_code run_keygen(const struct arguments *arguments, const struct settings *settings)
{
    const char *client = arguments->values[OPTION_CLIENT];
    struct key_ring ring = {0};
    struct error err = {0};
    enum exit_code code;
    enum status st = ST_OK;

    if (settings->signing_keys != NULL)
        st = key_ring_read(settings->signing_keys, &ring, &err);
    if (st == ST_OK)
        st = key_ring_extend(&ring, client != NULL ? client : "*", time(NULL), &err);
    code = st == ST_OK ? EXIT_OK : command_fail(&err, STAGE_SETUP);
    if (st == ST_OK && (file_make_private(STDOUT_FILENO, &err) != ST_OK ||
                        key_ring_print(stdout, &ring, &err) != ST_OK))
        code = command_fail(&err, STAGE_WORK);
    key_ring_clear(&ring);
    return code;
}

static enum status event_keys_derive(struct key_store *store, const char *client,
                                     const char *event_id, struct event_keys *keys,
                                     struct error *err)
{
    uint8_t ids[KEYS_MAX];
    size_t const count = key_store_key_ids(store, client, time(NULL), ids);
    enum status st = ST_OK;

    if (count == 0)
        return error_set(err, ST_NO_KEY, "no key of this client verifies any more");
    keys->keys = calloc(count, sizeof *keys->keys);
    if (keys->keys == NULL)
        return error_set(err, ST_NO_MEMORY, "the keys of an event");
    keys->count = count;
    for (size_t i = 0; st == ST_OK && i < count; i++)
        st = key_store_event_key_by_id(store, client, ids[i], event_id, &keys->keys[i], err);
    return st;
}

static enum status event_id_check(const char *event_id, struct error *err)
{
    if (event_id == NULL)
        return error_set(err, ST_INVALID, "event-key: --event is missing");
    if (!id_is_event((struct text){.data = event_id, .len = strlen(event_id)}))
        return error_set(err, ST_INVALID, "--event: not 1 to %d of A-Z a-z 0-9 . _ : -",
                         TOKEN_ID_BYTES_MAX);
    return ST_OK;
}

static enum exit_code run_event_key(const struct arguments *arguments,
                                    const struct settings *settings)
{
    const char *event_id = arguments->values[OPTION_EVENT];
    struct key_store *store = NULL;
    struct event_keys keys = {0};
    struct error err = {0};
    enum exit_code code;
    enum status st = event_id_check(event_id, &err);

    if (st == ST_OK)
        st = store_open(settings, &store, &err);
    if (st == ST_OK)
        st = event_keys_derive(store, arguments->values[OPTION_CLIENT], event_id, &keys, &err);
    code = st == ST_OK ? EXIT_OK : command_fail(&err, STAGE_SETUP);
    if (st == ST_OK && (file_make_private(STDOUT_FILENO, &err) != ST_OK ||
                        event_keys_print(stdout, &keys, &err) != ST_OK))
        code = command_fail(&err, STAGE_WORK);
    event_keys_clear(&keys);
    key_store_free(&store);
    return code;
}

/* ---- verify ---- */

/* Tokens are judged by a ring or by the keys of one event. */
struct judge {
    struct signer *signer;
    struct key_store *store; /* NULL: by event_keys */
    struct event_keys event_keys;
    const char *client;
    int64_t now_s;
    size_t judged_count, refused_count;
};

static enum status judge_time(const char *at, int64_t *now_s, struct error *err)
{
    struct civil_time time_read = {0};
    enum civil_time_fault fault;

    *now_s = time(NULL);
    if (at == NULL)
        return ST_OK;
    fault = civil_time_read((struct text){.data = at, .len = strlen(at)}, &time_read);
    if (fault != CIVIL_TIME_OK)
        return error_set(err, ST_INVALID, "--at: %s", civil_time_fault_reason(fault));
    *now_s = time_read.seconds;
    return ST_OK;
}

static bool is_given(const struct arguments *arguments, const char *setting)
{
    for (size_t i = 0; i < arguments->settings_count; i++)
        if (strcmp(arguments->settings[i].setting->name, setting) == 0)
            return true;
    return false;
}

/* An event key on the command line goes before a key ring that is set elsewhere. */
static enum status judge_keys_open(struct judge *judge, const struct arguments *arguments,
                                   const struct settings *settings, struct error *err)
{
    const char *path = arguments->values[OPTION_EVENT_KEY];

    if (path == NULL)
        return store_open(settings, &judge->store, err);
    if (is_given(arguments, "signing-keys"))
        return error_set(err, ST_INVALID, "verify: --event-key beside --signing-keys");
    if (judge->client != NULL)
        return error_set(err, ST_INVALID, "verify: --client beside --event-key");
    return event_keys_read(path, &judge->event_keys, err);
}

static enum status judge_open(struct judge *judge, const struct arguments *arguments,
                              const struct settings *settings, struct error *err)
{
    enum status st;

    *judge = (struct judge){.client = arguments->values[OPTION_CLIENT]};
    st = judge_time(arguments->values[OPTION_AT], &judge->now_s, err);
    if (st == ST_OK)
        st = judge_keys_open(judge, arguments, settings, err);
    if (st == ST_OK)
        st = signer_new(&judge->signer, err);
    return st;
}

static void judge_close(struct judge *judge)
{
    signer_free(&judge->signer);
    key_store_free(&judge->store);
    event_keys_clear(&judge->event_keys);
}

/* The event's key of the token's key id; any other is as good to say that there is none. */
static const struct event_key *event_key_for(const struct event_keys *keys, const char *text,
                                             size_t len)
{
    struct token_parts parts;

    if (token_read(text, len, &parts) == TOKEN_OK)
        for (size_t i = 0; i < keys->count; i++)
            if (keys->keys[i].key_id == parts.claims.key_id)
                return &keys->keys[i];
    return &keys->keys[0];
}

static enum status judge_token(struct judge *judge, const char *text, size_t len, struct error *err)
{
    enum token_verdict verdict = TOKEN_BAD_MAC;
    struct token_claims claims;
    enum status st;

    if (judge->store != NULL)
        st = signer_verify_by_store(judge->signer, judge->store, judge->client, text, len,
                                    judge->now_s, &verdict, &claims, err);
    else
        st = signer_verify(judge->signer, event_key_for(&judge->event_keys, text, len), text, len,
                           judge->now_s, &verdict, &claims, err);
    if (st != ST_OK)
        return st;
    judge->judged_count++;
    judge->refused_count += verdict != TOKEN_OK;
    return verdict_print(stdout, verdict, &claims, judge->now_s, err);
}

/* A line ends with LF or the input; everything else is a part of the token. No more of a line is
 * kept than tells that it is too long. */
struct line {
    char text[TOKEN_CHARS_MAX + 1];
    size_t len;
};

static bool line_read(FILE *in, struct line *line)
{
    int c = getc(in);

    line->len = 0;
    if (c == EOF)
        return false;
    for (; c != EOF && c != '\n'; c = getc(in))
        if (line->len < sizeof line->text)
            line->text[line->len++] = (char)c;
    return true;
}

static enum status judge_lines(struct judge *judge, FILE *in, struct error *err)
{
    struct line line;
    enum status st = ST_OK;

    while (st == ST_OK && line_read(in, &line))
        st = judge_token(judge, line.text, line.len, err);
    if (st == ST_OK && ferror(in))
        st = error_set(err, ST_IO, "standard input: %s", strerror(errno));
    return st;
}

static enum status judge_operands(struct judge *judge, const struct arguments *arguments,
                                  struct error *err)
{
    enum status st = ST_OK;

    for (int i = 0; st == ST_OK && i < arguments->operands_count; i++) {
        const char *operand = arguments->operands[i];

        st = strcmp(operand, "-") == 0 ? judge_lines(judge, stdin, err)
                                       : judge_token(judge, operand, strlen(operand), err);
    }
    if (st == ST_OK && judge->judged_count == 0)
        st = error_set(err, ST_NOT_FOUND, "standard input: no token");
    return st;
}

static enum exit_code run_verify(const struct arguments *arguments, const struct settings *settings)
{
    struct judge judge;
    struct error err = {0};
    enum exit_code code = EXIT_OK;

    if (judge_open(&judge, arguments, settings, &err) != ST_OK)
        code = command_fail(&err, STAGE_SETUP);
    else if (judge_operands(&judge, arguments, &err) != ST_OK)
        code = command_fail(&err, STAGE_WORK);
    else if (judge.refused_count > 0)
        code = EXIT_REFUSED;
    judge_close(&judge);
    return code;
}

/* ---- version ---- */

static enum exit_code run_version(const struct arguments *arguments,
                                  const struct settings *settings)
{
    struct font_set *fonts = NULL;
    uint8_t hash[SHA256_BYTES];
    struct error err = {0};
    enum status st;

    (void)arguments;
    puts("ticketpress " TICKETPRESS_VERSION);
    st = resources_load_fonts(settings, &fonts, &err);
    if (st == ST_OK)
        st = font_set_hash(fonts, hash, &err);
    font_set_free(&fonts);
    if (st != ST_OK)
        return command_fail(&err, STAGE_SETUP);
    fputs("fonts ", stdout);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        printf("%02x", hash[i]);
    puts("");
    return EXIT_OK;
}

/* ---- what needs no settings ---- */

static enum exit_code run_layouts(const struct arguments *arguments,
                                  const struct settings *settings)
{
    struct error err = {0};

    (void)settings;
    if (strcmp(arguments->operands[0], "check") == 0)
        return command_layouts_check(arguments->operands + 1, arguments->operands_count - 1);
    error_set(&err, ST_INVALID,
              "layouts: \"%.64s\" is no word of it (see ticketpress layouts --help)",
              arguments->operands[0]);
    return command_fail(&err, STAGE_SETUP);
}

static enum exit_code run_settings(const struct arguments *arguments,
                                   const struct settings *settings)
{
    (void)settings;
    if (arguments->values[OPTION_MARKDOWN] != NULL)
        settings_print_markdown(stdout);
    else
        settings_print_help(stdout, USED_BY_ALL);
    return EXIT_OK;
}

/* ---- the program ---- */

static enum exit_code run_with_settings(const struct command *command,
                                        const struct arguments *arguments,
                                        const char *const *environment)
{
    struct settings_sources const sources = {
        .config_path = arguments->values[OPTION_CONFIG],
        .environment = environment,
        .options = arguments->settings,
        .options_count = arguments->settings_count,
    };
    struct settings settings = {0};
    struct error err = {0};
    enum exit_code code;

    config_json_start();
    if (sign_start(&err) != ST_OK)
        return command_fail(&err, STAGE_WORK);
    if (settings_load(&sources, &settings, &err) != ST_OK)
        return command_fail(&err, STAGE_SETUP);
    code = command->run(arguments, &settings);
    settings_clear(&settings);
    return code;
}

static enum exit_code command_run(const struct command *command, int argc, char **argv,
                                  const char *const *environment)
{
    struct arguments arguments;
    struct error err = {0};

    if (arguments_read(command, argc, argv, &arguments, &err) != ST_OK)
        return command_fail(&err, STAGE_SETUP);
    if (arguments.values[OPTION_HELP] != NULL) {
        print_command_help(stdout, command);
        return EXIT_OK;
    }
    if (command->settings == 0)
        return command->run(&arguments, NULL);
    return run_with_settings(command, &arguments, environment);
}

/* What was printed must have arrived: a full disk is no success. */
static enum exit_code output_close(enum exit_code code)
{
    struct error err = {0};

    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    error_set(&err, ST_IO, "standard output: %s", strerror(errno));
    return code == EXIT_OK ? command_fail(&err, STAGE_WORK) : code;
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "help") == 0 || strcmp(argument, "--help") == 0 ||
           strcmp(argument, "-h") == 0;
}

enum exit_code commands_run(int argc, char **argv, const char *const *environment)
{
    const struct command *command;
    struct error err = {0};

    if (argc < 2) {
        print_program_help(stderr);
        return EXIT_USAGE;
    }
    if (asks_for_help(argv[1])) {
        print_program_help(stdout);
        return output_close(EXIT_OK);
    }
    command = command_find(argv[1]);
    if (command == NULL) {
        error_set(&err, ST_INVALID, "there is no command \"%.64s\" (see ticketpress --help)",
                  argv[1]);
        return command_fail(&err, STAGE_SETUP);
    }
    return output_close(command_run(command, argc - 2, argv + 2, environment));
}
