#include "service/config.h"

#include "service/config_json.h"
#include "service/cores.h"
#include "service/log.h"
#include "workers/pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KIB   INT64_C(1024)
#define MIB   (1024 * KIB)
#define GIB   (1024 * MIB)
#define DAY_S INT64_C(86400)

#define DEFAULT_LISTEN "127.0.0.1:8080"

#define ENVIRONMENT_PREFIX "TICKETPRESS_"
#define ENVIRONMENT_CONFIG ENVIRONMENT_PREFIX "CONFIG"

enum {
    WORKERS_MAX = POOL_THREADS_MAX,
    SETTING_NAME_BYTES_MAX = 40,
    PATHS_MAX = 64, /* in one list */
    ORIGIN_BYTES_MAX = 256,
};

#define AT(member) offsetof(struct settings, member)

static const char *const STORES[] = {"memory", NULL};

static const struct setting SETTINGS[] = {
    {.name = "listen",
     .kind = SETTING_ADDRESSES,
     .offset = AT(listen),
     .default_text = DEFAULT_LISTEN,
     .meaning =
         "where to listen: host:port or [v6]:port; may be repeated; beyond loopback only with "
         "client-keys",
     .users = USED_BY_SERVE},
    {.name = "store",
     .kind = SETTING_WORD,
     .offset = AT(store),
     .words = STORES,
     .default_number = 0,
     .meaning = "where jobs live: memory keeps nothing beyond the process",
     .users = USED_BY_SERVE},
    {.name = "signing-keys",
     .kind = SETTING_PATH,
     .offset = AT(signing_keys),
     .default_text = "a development key in data",
     .meaning = "key ring file",
     .users = USED_WITH_KEYS},
    {.name = "data",
     .kind = SETTING_PATH,
     .offset = AT(data),
     .default_text = "$STATE_DIRECTORY or ./ticketpress-data",
     .meaning = "directory of the program's own files, such as the development key",
     .users = USED_BY_PRESS},
    {.name = "client-keys",
     .kind = SETTING_PATH,
     .offset = AT(client_keys),
     .default_text = "none",
     .meaning = "file of the clients that may call, with their scopes",
     .users = USED_BY_SERVE},
    {.name = "fonts",
     .kind = SETTING_PATHS,
     .offset = AT(fonts),
     .default_text = "the default list",
     .meaning = "font files and directories, in fallback order; FILE#N: face N of a collection, "
                "from 0; may be repeated",
     .users = USED_BY_PRESS | USED_BY_VERSION},
    {.name = "layouts",
     .kind = SETTING_PATH,
     .offset = AT(layouts),
     .default_text = "built-in",
     .meaning = "directory of more layouts",
     .users = USED_BY_PRESS},
    {.name = "workers",
     .kind = SETTING_NUMBER,
     .offset = AT(workers),
     .min = 1,
     .max = WORKERS_MAX,
     .default_text = "cores by affinity and cgroup quota",
     .meaning = "threads of the pool",
     .users = USED_BY_PRESS},
    {.name = "worker-nice",
     .kind = SETTING_NUMBER,
     .offset = AT(worker_nice),
     .min = 0,
     .max = 19,
     .default_number = 10,
     .meaning = "how far their priority is below the front end's",
     .users = USED_BY_PRESS},
    {.name = "slice-tickets",
     .kind = SETTING_NUMBER,
     .offset = AT(slice_tickets),
     .min = 1,
     .max = 1000,
     .default_number = 48,
     .meaning = "tickets a slice, the unit of work",
     .users = USED_BY_PRESS},
    {.name = "task-deadline-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(task_deadline_ms),
     .min = 100,
     .max = 600000,
     .default_number = 10000,
     .meaning = "time for one task",
     .users = USED_BY_PRESS},
    {.name = "task-grace-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(task_grace_ms),
     .min = 100,
     .max = 600000,
     .default_number = 2000,
     .meaning = "how much later its thread is given up",
     .users = USED_BY_PRESS},
    {.name = "threads-given-up-max",
     .kind = SETTING_NUMBER,
     .offset = AT(threads_given_up_max),
     .min = 1,
     .max = 64,
     .default_number = 8,
     .meaning = "threads given up before no more work is taken",
     .users = USED_BY_PRESS},
    {.name = "tickets-max",
     .kind = SETTING_NUMBER,
     .offset = AT(tickets_max),
     .min = 1,
     .max = 1000000,
     .default_number = 50000,
     .meaning = "tickets in a batch",
     .users = USED_BY_PRESS},
    {.name = "body-bytes-max",
     .kind = SETTING_BYTES,
     .offset = AT(body_bytes_max),
     .min = KIB,
     .max = GIB,
     .default_number = 8 * MIB,
     .meaning = "size of a batch's JSON",
     .users = USED_BY_PRESS},
    {.name = "parse-bytes-max",
     .kind = SETTING_BYTES,
     .offset = AT(parse_bytes_max),
     .min = 16 * MIB,
     .max = 1024 * GIB,
     .default_number = 256 * MIB,
     .meaning = "memory that parsing may use in all",
     .users = USED_BY_PRESS},
    {.name = "sync-tickets-max",
     .kind = SETTING_NUMBER,
     .offset = AT(sync_tickets_max),
     .min = 0,
     .max = 1000,
     .default_number = 50,
     .meaning = "at most this many are answered at once",
     .users = USED_BY_SERVE},
    {.name = "sync-wait-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(sync_wait_ms),
     .min = 0,
     .max = 60000,
     .default_number = 2000,
     .meaning = "how long such an answer may take before it is 202",
     .users = USED_BY_SERVE},
    {.name = "render-bytes-max",
     .kind = SETTING_BYTES,
     .offset = AT(render_bytes_max),
     .min = 64 * MIB,
     .max = 1024 * GIB,
     .default_number = GIB,
     .meaning = "memory of admitted jobs",
     .users = USED_BY_SERVE},
    {.name = "queue-tickets-max",
     .kind = SETTING_NUMBER,
     .offset = AT(queue_tickets_max),
     .min = 1,
     .max = 1000000000,
     .default_number = 200000,
     .meaning = "tickets admitted and not done",
     .users = USED_BY_SERVE},
    {.name = "job-ttl-s",
     .kind = SETTING_NUMBER,
     .offset = AT(job_ttl_s),
     .min = 60,
     .max = 366 * DAY_S,
     .default_number = DAY_S,
     .meaning = "how long a finished job is kept",
     .users = USED_BY_SERVE},
    {.name = "gone-ttl-s",
     .kind = SETTING_NUMBER,
     .offset = AT(gone_ttl_s),
     .min = 60,
     .max = 366 * DAY_S,
     .default_number = 7 * DAY_S,
     .meaning = "how long it is remembered after that",
     .users = USED_BY_SERVE},
    {.name = "store-bytes-max",
     .kind = SETTING_BYTES,
     .offset = AT(store_bytes_max),
     .min = MIB,
     .max = 1024 * 1024 * GIB,
     .default_number = GIB,
     .meaning = "documents kept; the oldest finished go first",
     .users = USED_BY_SERVE},
    {.name = "store-jobs-max",
     .kind = SETTING_NUMBER,
     .offset = AT(store_jobs_max),
     .min = 1,
     .max = 100000000,
     .default_number = 100000,
     .meaning = "jobs kept, likewise",
     .users = USED_BY_SERVE},
    {.name = "connections-max",
     .kind = SETTING_NUMBER,
     .offset = AT(connections_max),
     .min = 1,
     .max = 65536,
     .default_number = 4096,
     .meaning = "connections open at once",
     .users = USED_BY_SERVE},
    {.name = "connections-per-address-max",
     .kind = SETTING_NUMBER,
     .offset = AT(connections_per_address_max),
     .min = 1,
     .max = 65536,
     .default_number = 256,
     .meaning = "of them from one address",
     .users = USED_BY_SERVE},
    {.name = "header-timeout-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(header_timeout_ms),
     .min = 100,
     .max = 600000,
     .default_number = 5000,
     .meaning = "time for a request's header",
     .users = USED_BY_SERVE},
    {.name = "body-timeout-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(body_timeout_ms),
     .min = 100,
     .max = 3600000,
     .default_number = 30000,
     .meaning = "time for its body",
     .users = USED_BY_SERVE},
    {.name = "idle-timeout-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(idle_timeout_ms),
     .min = 100,
     .max = 3600000,
     .default_number = 60000,
     .meaning = "time between requests, and for a reader that stalls",
     .users = USED_BY_SERVE},
    {.name = "drain-linger-ms",
     .kind = SETTING_NUMBER,
     .offset = AT(drain_linger_ms),
     .min = 0,
     .max = 600000,
     .default_number = 5000,
     .meaning = "how long a stop waits for finished documents to be fetched",
     .users = USED_BY_SERVE},
    {.name = "log-level",
     .kind = SETTING_WORD,
     .offset = AT(log_level),
     .words = LOG_LEVEL_NAMES,
     .default_number = LOG_INFO,
     .meaning = "least level of the log's lines",
     .users = USED_BY_SERVE},
};
enum { SETTINGS_COUNT = sizeof SETTINGS / sizeof *SETTINGS };

const struct setting *settings_table(size_t *count)
{
    *count = SETTINGS_COUNT;
    return SETTINGS;
}

const struct setting *setting_find(const char *name, size_t len)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        if (strlen(SETTINGS[i].name) == len && memcmp(SETTINGS[i].name, name, len) == 0)
            return &SETTINGS[i];
    return NULL;
}

static bool is_number(const struct setting *setting)
{
    return setting->kind == SETTING_NUMBER || setting->kind == SETTING_BYTES;
}

static bool setting_is_list(const struct setting *setting)
{
    return setting->kind == SETTING_PATHS || setting->kind == SETTING_ADDRESSES;
}

/* ---- where values go ---- */

static void *settings_member(struct settings *settings, const struct setting *setting)
{
    return (char *)settings + setting->offset;
}

static void number_set(struct settings *settings, const struct setting *setting, int64_t number)
{
    assert(is_number(setting) || setting->kind == SETTING_WORD);
    memcpy(settings_member(settings, setting), &number, sizeof number);
}

static void path_set(struct settings *settings, const struct setting *setting, const char *path)
{
    assert(setting->kind == SETTING_PATH);
    memcpy(settings_member(settings, setting), &path, sizeof path);
}

static void paths_set(struct settings *settings, const struct setting *setting,
                      struct path_list list)
{
    assert(setting_is_list(setting));
    memcpy(settings_member(settings, setting), &list, sizeof list);
}

static int64_t default_workers(void)
{
    size_t const cores = cores_available();

    return cores < WORKERS_MAX ? (int64_t)cores : WORKERS_MAX;
}

static void defaults_set(struct settings *settings)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        if (is_number(&SETTINGS[i]) || SETTINGS[i].kind == SETTING_WORD)
            number_set(settings, &SETTINGS[i], SETTINGS[i].default_number);
    settings->workers = default_workers();
}

/* ---- numbers ---- */

static const struct {
    const char *suffix;
    int64_t factor;
} UNITS[] = {{"GiB", GIB}, {"MiB", MIB}, {"KiB", KIB}};
enum { UNITS_COUNT = sizeof UNITS / sizeof *UNITS };

/* The largest unit that leaves a whole number; 1 for plain bytes. */
static void number_text(const struct setting *setting, int64_t number, char *text,
                        size_t text_bytes)
{
    if (setting->kind == SETTING_BYTES)
        for (size_t i = 0; i < UNITS_COUNT; i++)
            if (number % UNITS[i].factor == 0) {
                snprintf(text, text_bytes, "%" PRId64 " %s", number / UNITS[i].factor,
                         UNITS[i].suffix);
                return;
            }
    snprintf(text, text_bytes, "%" PRId64, number);
}

/* Decimal digits only: no sign, no space, nothing that strtol would forgive. */
static bool digits_read(const char **at, int64_t *number)
{
    int64_t n = 0;
    const char *p = *at;

    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return false;
    *at = p;
    *number = n;
    return true;
}

static bool number_read(const struct setting *setting, const char *value, int64_t *number)
{
    if (!digits_read(&value, number))
        return false;
    if (setting->kind == SETTING_BYTES)
        for (size_t i = 0; i < UNITS_COUNT; i++)
            if (strcmp(value, UNITS[i].suffix) == 0)
                return !__builtin_mul_overflow(*number, UNITS[i].factor, number);
    return *value == '\0';
}

static enum status number_given(struct settings *settings, const struct setting *setting,
                                const char *value, const char *origin, struct error *err)
{
    char min[32], max[32];
    int64_t number;

    if (!number_read(setting, value, &number) || number < setting->min || number > setting->max) {
        number_text(setting, setting->min, min, sizeof min);
        number_text(setting, setting->max, max, sizeof max);
        return error_set(
            err, ST_INVALID, "%s: \"%.64s\" is not a number from %s to %s%s", origin, value, min,
            max, setting->kind == SETTING_BYTES ? " (suffixes KiB, MiB and GiB are known)" : "");
    }
    number_set(settings, setting, number);
    return ST_OK;
}

/* ---- paths ---- */

static enum status path_copy(struct settings *settings, const char *value, size_t len,
                             const char *origin, const char **path, struct error *err)
{
    struct text copy = {0};
    enum status st;

    if (len == 0)
        return error_set(err, ST_INVALID, "%s: an empty path", origin);
    st = arena_text_copy(&settings->arena, value, len, &copy, err);
    *path = copy.data;
    return st;
}

static enum status path_given(struct settings *settings, const struct setting *setting,
                              const char *value, const char *origin, struct error *err)
{
    const char *path = NULL;
    enum status st = path_copy(settings, value, strlen(value), origin, &path, err);

    if (st == ST_OK)
        path_set(settings, setting, path);
    return st;
}

static enum status paths_given(struct settings *settings, const struct setting *setting,
                               const char *const *values, size_t count, const char *origin,
                               struct error *err)
{
    const char **paths;
    enum status st = ST_OK;

    if (count < 1 || count > PATHS_MAX)
        return error_set(err, ST_INVALID, "%s: %zu paths, not 1 to %d", origin, count, PATHS_MAX);
    paths = arena_alloc(&settings->arena, count * sizeof *paths);
    if (paths == NULL)
        return error_set(err, ST_NO_MEMORY, "%s: a list of paths", origin);
    for (size_t i = 0; st == ST_OK && i < count; i++)
        st = path_copy(settings, values[i], strlen(values[i]), origin, &paths[i], err);
    if (st == ST_OK)
        paths_set(settings, setting, (struct path_list){.paths = paths, .count = count});
    return st;
}

/* ---- words ---- */

static void words_text(const struct setting *setting, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (const char *const *word = setting->words; *word != NULL; word++)
        snprintf(text + strlen(text), text_bytes - strlen(text), "%s%s",
                 word == setting->words ? "" : ", ", *word);
}

static enum status word_given(struct settings *settings, const struct setting *setting,
                              const char *value, const char *origin, struct error *err)
{
    char words[128];

    for (int64_t i = 0; setting->words[i] != NULL; i++) {
        if (strcmp(setting->words[i], value) == 0) {
            number_set(settings, setting, i);
            return ST_OK;
        }
    }
    words_text(setting, words, sizeof words);
    return error_set(err, ST_INVALID, "%s: \"%.64s\" is not one of %s", origin, value, words);
}

/* ---- any value ---- */

static enum status values_given(struct settings *settings, const struct setting *setting,
                                const char *const *values, size_t count, const char *origin,
                                struct error *err)
{
    if (setting_is_list(setting))
        return paths_given(settings, setting, values, count, origin, err);
    assert(count == 1);
    if (setting->kind == SETTING_WORD)
        return word_given(settings, setting, values[0], origin, err);
    if (setting->kind == SETTING_PATH)
        return path_given(settings, setting, values[0], origin, err);
    return number_given(settings, setting, values[0], origin, err);
}

/* ---- the configuration file ---- */

struct file_source {
    struct settings *settings;
    const char *path;
};

static enum status file_member(void *user, const struct config_member *member, struct error *err)
{
    const struct file_source *source = user;
    const struct setting *setting = setting_find(member->name, strlen(member->name));
    char origin[ORIGIN_BYTES_MAX];

    snprintf(origin, sizeof origin, "%s: %s", source->path, member->pointer);
    if (setting == NULL)
        return error_set(err, ST_INVALID, "%s: there is no such setting", origin);
    if (member->is_list && !setting_is_list(setting))
        return error_set(err, ST_INVALID, "%s: takes one value, not a list", origin);
    return values_given(source->settings, setting, member->values, member->values_count, origin,
                        err);
}

static enum status file_apply(struct settings *settings, const char *path, struct error *err)
{
    struct file_source source = {.settings = settings, .path = path};

    return path == NULL ? ST_OK : config_file_read(path, file_member, &source, err);
}

/* ---- the environment ---- */

/* WORKER_NICE to worker-nice; false when no setting's name can become that. */
static bool name_from_variable(const char *variable, size_t len, char name[SETTING_NAME_BYTES_MAX])
{
    if (len >= SETTING_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (variable[i] == '_')
            name[i] = '-';
        else if (variable[i] >= 'A' && variable[i] <= 'Z')
            name[i] = (char)(variable[i] - 'A' + 'a');
        else
            return false;
    }
    name[len] = '\0';
    return true;
}

/* A list is one text, with colons between paths, and with commas between addresses. */
static enum status separated_given(struct settings *settings, const struct setting *setting,
                                   const char *value, const char *origin, struct error *err)
{
    const char *const separator = setting->kind == SETTING_PATHS ? ":" : ",";
    const char *paths[PATHS_MAX];
    size_t count = 0;
    enum status st = ST_OK;

    for (const char *at = value; st == ST_OK && at != NULL;) {
        size_t const len = strcspn(at, separator);

        if (count == PATHS_MAX)
            return error_set(err, ST_INVALID, "%s: more than %d paths", origin, PATHS_MAX);
        st = path_copy(settings, at, len, origin, &paths[count++], err);
        at = at[len] != '\0' ? at + len + 1 : NULL;
    }
    return st == ST_OK ? paths_given(settings, setting, paths, count, origin, err) : st;
}

static enum status variable_apply(struct settings *settings, const char *variable, size_t name_len,
                                  struct error *err)
{
    char name[SETTING_NAME_BYTES_MAX], origin[ORIGIN_BYTES_MAX];
    const char *value = variable + name_len + 1;
    size_t const prefix_len = sizeof ENVIRONMENT_PREFIX - 1;
    const struct setting *setting = NULL;

    snprintf(origin, sizeof origin, "%.*s", (int)name_len, variable);
    if (name_from_variable(variable + prefix_len, name_len - prefix_len, name))
        setting = setting_find(name, strlen(name));
    if (setting == NULL)
        return error_set(err, ST_INVALID, "%s: there is no setting for this variable", origin);
    if (setting_is_list(setting))
        return separated_given(settings, setting, value, origin, err);
    return values_given(settings, setting, &value, 1, origin, err);
}

static enum status environment_apply(struct settings *settings, const char *const *environment,
                                     struct error *err)
{
    enum status st = ST_OK;

    for (; st == ST_OK && environment != NULL && *environment != NULL; environment++) {
        const char *variable = *environment;
        size_t const name_len = strcspn(variable, "=");

        if (strncmp(variable, ENVIRONMENT_PREFIX, sizeof ENVIRONMENT_PREFIX - 1) == 0 &&
            variable[name_len] == '=' &&
            strncmp(variable, ENVIRONMENT_CONFIG "=", sizeof ENVIRONMENT_CONFIG) != 0)
            st = variable_apply(settings, variable, name_len, err);
    }
    return st;
}

/* The configuration file is named by an option or a variable, never by itself. */
static const char *config_path(const struct settings_sources *sources)
{
    const char *const *variable = sources->environment;

    if (sources->config_path != NULL)
        return sources->config_path;
    for (; variable != NULL && *variable != NULL; variable++)
        if (strncmp(*variable, ENVIRONMENT_CONFIG "=", sizeof ENVIRONMENT_CONFIG) == 0)
            return *variable + sizeof ENVIRONMENT_CONFIG;
    return NULL;
}

/* The one address; and the directory that a service manager gives (systemd.exec, StateDirectory=),
 * else one here. */
static enum status texts_default(struct settings *settings, const char *const *environment,
                                 struct error *err)
{
    static const char GIVEN[] = "STATE_DIRECTORY=";
    static const char *const LISTEN[] = {DEFAULT_LISTEN};
    const char *path = "ticketpress-data";
    struct text copy = {0};
    enum status st;

    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, GIVEN, sizeof GIVEN - 1) == 0)
            path = *environment + sizeof GIVEN - 1;
    settings->listen = (struct path_list){.paths = LISTEN, .count = 1};
    st = arena_text_copy(&settings->arena, path, strlen(path), &copy, err);
    settings->data = copy.data;
    return st;
}

/* ---- the command line ---- */

/* The values of one setting, gathered where the first stands. */
static enum status option_apply(struct settings *settings, const struct setting_option *options,
                                size_t count, struct error *err)
{
    const struct setting *setting = options[0].setting;
    const char *values[PATHS_MAX];
    size_t values_count = 0;
    char origin[ORIGIN_BYTES_MAX];

    snprintf(origin, sizeof origin, "--%s", setting->name);
    for (size_t i = 0; i < count; i++) {
        if (options[i].setting != setting)
            continue;
        if (values_count == (setting_is_list(setting) ? PATHS_MAX : 1))
            return error_set(err, ST_INVALID, "%s: given more than %zu times", origin,
                             values_count);
        values[values_count++] = options[i].value;
    }
    return values_given(settings, setting, values, values_count, origin, err);
}

static bool is_first_of_its_setting(const struct setting_option *options, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (options[i].setting == options[index].setting)
            return false;
    return true;
}

static enum status options_apply(struct settings *settings, const struct setting_option *options,
                                 size_t count, struct error *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < count; i++)
        if (is_first_of_its_setting(options, i))
            st = option_apply(settings, options + i, count - i, err);
    return st;
}

/* The weakest source first: what follows takes its place. */
enum status settings_load(const struct settings_sources *sources, struct settings *settings,
                          struct error *err)
{
    enum status st;

    *settings = (struct settings){0};
    defaults_set(settings);
    st = texts_default(settings, sources->environment, err);
    if (st == ST_OK)
        st = file_apply(settings, config_path(sources), err);
    if (st == ST_OK)
        st = environment_apply(settings, sources->environment, err);
    if (st == ST_OK)
        st = options_apply(settings, sources->options, sources->options_count, err);
    if (st != ST_OK)
        settings_clear(settings);
    return st;
}

void settings_clear(struct settings *settings)
{
    arena_clear(&settings->arena);
    *settings = (struct settings){0};
}

/* ---- for people ---- */

static void default_value_text(const struct setting *setting, char *text, size_t text_bytes)
{
    if (setting->default_text != NULL)
        snprintf(text, text_bytes, "%s", setting->default_text);
    else if (setting->kind == SETTING_WORD)
        snprintf(text, text_bytes, "%s", setting->words[setting->default_number]);
    else
        number_text(setting, setting->default_number, text, text_bytes);
}

static const char *kind_text(enum setting_kind kind)
{
    switch (kind) {
    case SETTING_ADDRESSES:
        return "addresses";
    case SETTING_PATHS:
        return "paths";
    default:
        return "path";
    }
}

/* What stands behind an option's name in a help text. */
static const char *value_text(const struct setting *setting)
{
    if (is_number(setting))
        return "N";
    if (setting->kind == SETTING_WORD)
        return "WORD";
    return setting->kind == SETTING_ADDRESSES ? "ADDRESS" : "PATH";
}

static void range_text(const struct setting *setting, char *text, size_t text_bytes)
{
    char min[32], max[32];

    if (setting->kind == SETTING_WORD) {
        words_text(setting, text, text_bytes);
        return;
    }
    if (!is_number(setting)) {
        snprintf(text, text_bytes, "%s", kind_text(setting->kind));
        return;
    }
    number_text(setting, setting->min, min, sizeof min);
    number_text(setting, setting->max, max, sizeof max);
    snprintf(text, text_bytes, "%s to %s", min, max);
}

void settings_print_help(FILE *out, unsigned users)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const struct setting *setting = &SETTINGS[i];
        char option[SETTING_NAME_BYTES_MAX + 8], given[64], range[80];

        if ((setting->users & users) == 0)
            continue;
        snprintf(option, sizeof option, "%s %s", setting->name, value_text(setting));
        default_value_text(setting, given, sizeof given);
        range_text(setting, range, sizeof range);
        fprintf(out, "  --%-22s %s\n%27s(%s; default: %s)\n", option, setting->meaning, "", range,
                given);
    }
}

void settings_print_markdown(FILE *out)
{
    fputs("| setting | default | range | what |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        char given[64], range[80];

        default_value_text(&SETTINGS[i], given, sizeof given);
        range_text(&SETTINGS[i], range, sizeof range);
        fprintf(out, "| `%s` | %s | %s | %s |\n", SETTINGS[i].name, given, range,
                SETTINGS[i].meaning);
    }
}
