/*
 * Settings. One table says of each its name, type, default, range and meaning; the parser, the help
 * text and the README's list are made from it. A setting comes from a long option, else from the
 * environment (TICKETPRESS_ and its name in capitals, dashes as underscores), else from a member of
 * the configuration file, else it has its default. Every value given is checked, used or not.
 */
#ifndef TICKETPRESS_SERVICE_CONFIG_H
#define TICKETPRESS_SERVICE_CONFIG_H

#include "domain/arena.h"
#include "domain/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct path_list {
    const char *const *paths;
    size_t count;
};

/* Numbers are within the ranges of the table. */
struct settings {
    struct arena arena;       /* owns every text below */
    int64_t store;            /* the kind of job store; 0: memory */
    const char *data;         /* directory of the program's own files */
    const char *signing_keys; /* path of the key ring; NULL: the development key in data */
    struct path_list listen;  /* addresses, 1.. */
    const char *client_keys;  /* path; NULL: everybody may call */
    struct path_list fonts;   /* in fallback order; count 0: the default list */
    const char *layouts;      /* directory; NULL: built-in layouts only */
    int64_t workers;          /* threads */
    int64_t worker_nice;      /* 0..19 */
    int64_t slice_tickets;    /* tickets a slice */
    int64_t task_deadline_ms; /* a task's time */
    int64_t task_grace_ms;    /* and how much longer until its thread is given up */
    int64_t threads_given_up_max;
    int64_t tickets_max;     /* tickets in a batch */
    int64_t body_bytes_max;  /* of a batch's text */
    int64_t parse_bytes_max; /* memory for all parsing */
    int64_t sync_tickets_max, sync_wait_ms;
    int64_t render_bytes_max;  /* memory of admitted jobs */
    int64_t queue_tickets_max; /* tickets admitted and not done */
    int64_t job_ttl_s, gone_ttl_s;
    int64_t store_bytes_max, store_jobs_max;
    int64_t connections_max, connections_per_address_max;
    int64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms;
    int64_t drain_linger_ms;
    int64_t log_level; /* enum log_level */
};

enum setting_kind {
    SETTING_NUMBER,    /* int64_t, decimal */
    SETTING_BYTES,     /* int64_t, decimal, or with the suffix KiB, MiB or GiB */
    SETTING_WORD,      /* int64_t, an index into words */
    SETTING_PATH,      /* const char * */
    SETTING_ADDRESSES, /* struct path_list: as SETTING_PATHS, with commas in the environment */
    SETTING_PATHS /* struct path_list: the option repeated, a list in JSON, colons between paths in
                     the environment */
};

/* The commands that take a setting as an option. From the environment and the configuration file,
 * which serve all commands, every setting is taken by each. */
enum setting_user {
    USED_BY_RENDER = 1,
    USED_BY_VERIFY = 2,
    USED_BY_KEYGEN = 4,
    USED_BY_EVENT_KEY = 8,
    USED_BY_SERVE = 16,
    USED_BY_VERSION = 32,
    USED_BY_PRESS = USED_BY_RENDER | USED_BY_SERVE,
    USED_BY_ALL = 63,
    USED_WITH_KEYS = USED_BY_ALL & ~USED_BY_VERSION,
};

struct setting {
    const char *name; /* as its option is spelled, without dashes before it */
    enum setting_kind kind;
    size_t offset;            /* of its member in struct settings */
    int64_t min, max;         /* of numbers */
    const char *const *words; /* SETTING_WORD: NULL-terminated */
    int64_t default_number;   /* 0 with a default_text: found out at the start */
    const char *default_text; /* what the default is, in words; NULL: default_number */
    const char *meaning;
    unsigned users; /* of enum setting_user */
};

/* The table, in the order in which it is shown. */
const struct setting *settings_table(size_t *count);

/* By name, which need not be zero-terminated; NULL: there is none. */
const struct setting *setting_find(const char *name, size_t len);

/* One value from the command line. */
struct setting_option {
    const struct setting *setting;
    const char *value;
};

struct settings_sources {
    const char *config_path;        /* --config; NULL: TICKETPRESS_CONFIG, if that is set */
    const char *const *environment; /* NULL-terminated NAME=VALUE texts, such as environ */
    const struct setting_option *options;
    size_t options_count;
};

/*
 * All settings from all sources.
 *
 * Out:     settings  zeroed on entry; cleared by settings_clear; nothing borrowed from sources
 * Errors:  ST_INVALID    an unknown or badly valued setting; err names setting, value, range and
 *                        where it was given
 *          ST_NOT_FOUND, ST_TOO_LARGE, ST_IO  the configuration file
 *          ST_NO_MEMORY  *settings is left zeroed in each case
 */
MUST_USE enum status settings_load(const struct settings_sources *sources,
                                   struct settings *settings, struct error *err);
void settings_clear(struct settings *settings);

/* The table for people: the options of some commands as lines of a help text; all of it as a table
 * in Markdown. */
void settings_print_help(FILE *out, unsigned users);
void settings_print_markdown(FILE *out);

#endif
