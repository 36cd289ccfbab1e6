#include "service/config.h"

#include "service/config_json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS_MAX = 80 };

static char config_path[] = "/tmp/test_config_XXXXXX";

static void setup(void)
{
    config_json_start();
}

static void setup_file(void)
{
    int const fd = mkstemp(config_path);

    setup();
    cr_assert_geq(fd, 0);
    close(fd);
}

static void teardown_file(void)
{
    cr_assert_eq(unlink(config_path), 0);
}

static void config_write(const char *text)
{
    FILE *file = fopen(config_path, "w");

    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static struct setting_option option_of(const char *name, const char *value)
{
    struct setting_option const option = {.setting = setting_find(name, strlen(name)),
                                          .value = value};

    cr_assert_not_null(option.setting, "%s", name);
    return option;
}

/* ---- the table ---- */

Test(settings_table, has_sound_rows)
{
    size_t count;
    const struct setting *settings = settings_table(&count);

    for (size_t i = 0; i < count; i++) {
        const struct setting *s = &settings[i];

        cr_expect_eq(setting_find(s->name, strlen(s->name)), s, "%s: twice", s->name);
        cr_expect_neq(s->users, 0, "%s: no option of any command", s->name);
        cr_expect_not_null(s->meaning, "%s", s->name);
        if (s->kind == SETTING_WORD)
            cr_expect_not_null(s->words[s->default_number], "%s", s->name);
        else if (s->default_text == NULL)
            cr_expect(s->min <= s->default_number && s->default_number <= s->max, "%s", s->name);
    }
}

Test(settings_load, takes_words_of_a_setting_and_no_others)
{
    static const struct {
        const char *value;
        enum status status;
        int64_t level;
    } ROWS[] = {{"debug", ST_OK, 0}, {"error", ST_OK, 3},      {"warning", ST_INVALID, 0},
                {"", ST_INVALID, 0}, {"DEBUG", ST_INVALID, 0}, {"1", ST_INVALID, 0}};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct setting_option const option = option_of("log-level", ROWS[i].value);
        struct settings_sources const sources = {.options = &option, .options_count = 1};
        struct settings settings = {0};
        struct error err = {0};

        cr_expect_eq(settings_load(&sources, &settings, &err), ROWS[i].status, "%s", ROWS[i].value);
        if (ROWS[i].status == ST_OK)
            cr_expect_eq(settings.log_level, ROWS[i].level, "%s", ROWS[i].value);
        else
            cr_expect_not_null(strstr(err.text, "debug, info, warn, error"), "%s", err.text);
        settings_clear(&settings);
    }
}

Test(settings_load, takes_addresses_from_a_variable_with_commas)
{
    static const char *const ENVIRONMENT[] = {"TICKETPRESS_LISTEN=127.0.0.1:1,[::1]:2", NULL};
    struct settings_sources const sources = {.environment = ENVIRONMENT};
    struct settings settings = {0};

    cr_assert_eq(settings_load(&sources, &settings, NULL), ST_OK);
    cr_assert_eq(settings.listen.count, 2);
    cr_expect_str_eq(settings.listen.paths[0], "127.0.0.1:1");
    cr_expect_str_eq(settings.listen.paths[1], "[::1]:2");
    settings_clear(&settings);
}

Test(setting_find, goes_by_the_whole_name)
{
    cr_expect_null(setting_find("worker", 6));
    cr_expect_null(setting_find("workers-", 8));
    cr_expect_not_null(setting_find("workers-", 7));
    cr_expect_null(setting_find("", 0));
}

/* ---- sources ---- */

Test(settings_load, has_defaults_for_all, .init = setup)
{
    struct settings settings;

    cr_assert_eq(settings_load(&(struct settings_sources){0}, &settings, NULL), ST_OK);
    cr_expect_null(settings.signing_keys);
    cr_expect_null(settings.layouts);
    cr_expect_eq(settings.fonts.count, 0);
    cr_expect(settings.workers >= 1 && settings.workers <= 256);
    cr_expect_eq(settings.worker_nice, 10);
    cr_expect_eq(settings.slice_tickets, 48);
    cr_expect_eq(settings.task_deadline_ms, 10000);
    cr_expect_eq(settings.task_grace_ms, 2000);
    cr_expect_eq(settings.threads_given_up_max, 8);
    cr_expect_eq(settings.tickets_max, 50000);
    cr_expect_eq(settings.body_bytes_max, 8 << 20);
    cr_expect_eq(settings.parse_bytes_max, 256 << 20);
    settings_clear(&settings);
}

Test(settings_load, lets_options_go_before_variables_and_these_before_the_file, .init = setup_file,
     .fini = teardown_file)
{
    const char *environment[] = {"HOME=/", "TICKETPRESS_WORKERS=22", "TICKETPRESS_WORKER_NICE=12",
                                 NULL};
    struct setting_option const options[] = {option_of("workers", "33")};
    struct settings_sources const sources = {.config_path = config_path,
                                             .environment = environment,
                                             .options = options,
                                             .options_count = 1};
    struct settings settings;
    struct error err = {0};

    config_write("{\"workers\": 11, \"worker-nice\": \"11\", \"slice-tickets\": 11}");
    cr_assert_eq(settings_load(&sources, &settings, &err), ST_OK, "%s", err.text);
    cr_expect_eq(settings.workers, 33);
    cr_expect_eq(settings.worker_nice, 12);
    cr_expect_eq(settings.slice_tickets, 11);
    settings_clear(&settings);
}

Test(settings_load, takes_lists_of_paths_from_each_source, .init = setup_file,
     .fini = teardown_file)
{
    const char *environment[] = {"TICKETPRESS_FONTS=c:d:e", NULL};
    struct setting_option const options[] = {option_of("fonts", "f:1"), option_of("workers", "1"),
                                             option_of("fonts", "g")};
    struct settings_sources sources = {.config_path = config_path};
    struct settings settings;

    config_write("{\"fonts\": [\"a\", \"b:1\"]}");
    cr_assert_eq(settings_load(&sources, &settings, NULL), ST_OK);
    cr_assert_eq(settings.fonts.count, 2);
    cr_expect_str_eq(settings.fonts.paths[0], "a");
    cr_expect_str_eq(settings.fonts.paths[1], "b:1");
    settings_clear(&settings);
    sources.environment = environment;
    cr_assert_eq(settings_load(&sources, &settings, NULL), ST_OK);
    cr_assert_eq(settings.fonts.count, 3);
    cr_expect_str_eq(settings.fonts.paths[2], "e");
    settings_clear(&settings);
    sources.options = options;
    sources.options_count = 3;
    cr_assert_eq(settings_load(&sources, &settings, NULL), ST_OK);
    cr_assert_eq(settings.fonts.count, 2);
    cr_expect_str_eq(settings.fonts.paths[0], "f:1");
    cr_expect_str_eq(settings.fonts.paths[1], "g");
    settings_clear(&settings);
}

Test(settings_load, finds_the_file_by_a_variable, .init = setup_file, .fini = teardown_file)
{
    char variable[64];
    const char *environment[] = {variable, NULL};
    struct settings_sources const sources = {.environment = environment};
    struct settings settings;

    snprintf(variable, sizeof variable, "TICKETPRESS_CONFIG=%s", config_path);
    config_write("{\"tickets-max\": 7, \"layouts\": \"l\"}");
    cr_assert_eq(settings_load(&sources, &settings, NULL), ST_OK);
    cr_expect_eq(settings.tickets_max, 7);
    cr_expect_str_eq(settings.layouts, "l");
    settings_clear(&settings);
}

/* ---- values ---- */

static const struct {
    const char *name, *value;
    int64_t number; /* -1: refused */
} VALUE_ROWS[] = {
    {"workers", "1", 1},
    {"workers", "256", 256},
    {"workers", "0", -1},
    {"workers", "257", -1},
    {"workers", "", -1},
    {"workers", "-1", -1},
    {"workers", "+1", -1},
    {"workers", " 1", -1},
    {"workers", "1 ", -1},
    {"workers", "1.0", -1},
    {"workers", "0x10", -1},
    {"workers", "010", 10},
    {"workers", "1KiB", -1},
    {"workers", "18446744073709551617", -1},
    {"worker-nice", "0", 0},
    {"worker-nice", "19", 19},
    {"worker-nice", "20", -1},
    {"slice-tickets", "1000", 1000},
    {"slice-tickets", "1001", -1},
    {"slice-tickets", "0", -1},
    {"task-deadline-ms", "100", 100},
    {"task-deadline-ms", "99", -1},
    {"task-deadline-ms", "600000", 600000},
    {"task-deadline-ms", "600001", -1},
    {"task-grace-ms", "99", -1},
    {"task-grace-ms", "600001", -1},
    {"threads-given-up-max", "64", 64},
    {"threads-given-up-max", "65", -1},
    {"threads-given-up-max", "0", -1},
    {"tickets-max", "1000000", 1000000},
    {"tickets-max", "1000001", -1},
    {"tickets-max", "0", -1},
    {"body-bytes-max", "1024", 1024},
    {"body-bytes-max", "1023", -1},
    {"body-bytes-max", "1KiB", 1024},
    {"body-bytes-max", "3MiB", 3 << 20},
    {"body-bytes-max", "1GiB", 1 << 30},
    {"body-bytes-max", "1073741825", -1},
    {"body-bytes-max", "2GiB", -1},
    {"body-bytes-max", "1 KiB", -1},
    {"body-bytes-max", "1kib", -1},
    {"body-bytes-max", "1KB", -1},
    {"body-bytes-max", "KiB", -1},
    {"body-bytes-max", "9223372036854775807GiB", -1},
    {"parse-bytes-max", "16MiB", 16 << 20},
    {"parse-bytes-max", "16777215", -1},
};

static int64_t number_of(const struct settings *settings, const struct setting *setting)
{
    int64_t number;

    memcpy(&number, (const char *)settings + setting->offset, sizeof number);
    return number;
}

Test(settings_load, keeps_numbers_in_their_ranges, .init = setup)
{
    for (size_t i = 0; i < sizeof VALUE_ROWS / sizeof *VALUE_ROWS; i++) {
        struct setting_option const option = option_of(VALUE_ROWS[i].name, VALUE_ROWS[i].value);
        struct settings_sources const sources = {.options = &option, .options_count = 1};
        bool const is_refused = VALUE_ROWS[i].number < 0;
        struct settings settings;
        struct error err = {0};

        cr_expect_eq(settings_load(&sources, &settings, &err), is_refused ? ST_INVALID : ST_OK,
                     "%s %s", VALUE_ROWS[i].name, VALUE_ROWS[i].value);
        if (!is_refused)
            cr_expect_eq(number_of(&settings, option.setting), VALUE_ROWS[i].number, "%s %s",
                         VALUE_ROWS[i].name, VALUE_ROWS[i].value);
        else
            cr_expect_not_null(strstr(err.text, VALUE_ROWS[i].name), "%s", err.text);
        settings_clear(&settings);
    }
}

Test(settings_load, says_setting_value_range_and_source, .init = setup_file, .fini = teardown_file)
{
    const char *environment[] = {"TICKETPRESS_BODY_BYTES_MAX=7", NULL};
    struct setting_option const option = option_of("workers", "many");
    struct settings settings;
    struct error err = {0};
    char expected[128];

    cr_expect_eq(settings_load(&(struct settings_sources){.options = &option, .options_count = 1},
                               &settings, &err),
                 ST_INVALID);
    cr_expect_str_eq(err.text, "--workers: \"many\" is not a number from 1 to 256");
    cr_expect_eq(
        settings_load(&(struct settings_sources){.environment = environment}, &settings, &err),
        ST_INVALID);
    cr_expect_str_eq(err.text, "TICKETPRESS_BODY_BYTES_MAX: \"7\" is not a number from 1 KiB to 1 "
                               "GiB (suffixes KiB, MiB and GiB are known)");
    config_write("{\"worker-nice\": 20}");
    cr_expect_eq(
        settings_load(&(struct settings_sources){.config_path = config_path}, &settings, &err),
        ST_INVALID);
    snprintf(expected, sizeof expected, "%s: /worker-nice: \"20\" is not a number from 0 to 19",
             config_path);
    cr_expect_str_eq(err.text, expected);
}

/* ---- refusals ---- */

static const char *const BAD_VARIABLES[] = {
    "TICKETPRESS_WORKERZ=1",
    "TICKETPRESS_=1",
    "TICKETPRESS_workers=1",
    "TICKETPRESS_WORKER-NICE=1",
    "TICKETPRESS_FONTS=",
    "TICKETPRESS_FONTS=a::b",
    "TICKETPRESS_LAYOUTS=",
    "TICKETPRESS_WORKERS=",
    "TICKETPRESS_A_NAME_THAT_IS_LONGER_THAN_THE_NAME_OF_ANY_SETTING=1",
};

Test(settings_load, refuses_unknown_and_empty_variables, .init = setup)
{
    for (size_t i = 0; i < sizeof BAD_VARIABLES / sizeof *BAD_VARIABLES; i++) {
        const char *environment[] = {BAD_VARIABLES[i], NULL};
        struct settings settings;
        struct error err = {0};

        cr_expect_eq(
            settings_load(&(struct settings_sources){.environment = environment}, &settings, &err),
            ST_INVALID, "%s", BAD_VARIABLES[i]);
        cr_expect_eq(strncmp(err.text, BAD_VARIABLES[i], strcspn(BAD_VARIABLES[i], "=")), 0, "%s",
                     err.text);
    }
}

Test(settings_load, leaves_other_programs_variables_alone, .init = setup)
{
    const char *environment[] = {"TICKETPRESSURE=1", "XTICKETPRESS_A=1",
                                 "TICKETPRESS_WITHOUT_VALUE", NULL};
    struct settings settings;

    cr_expect_eq(
        settings_load(&(struct settings_sources){.environment = environment}, &settings, NULL),
        ST_OK);
    settings_clear(&settings);
}

static const struct {
    const char *text, *message;
} BAD_FILES[] = {
    {"{\"workerz\": 1}", "/workerz: there is no such setting"},
    {"{\"config\": \"x\"}", "/config: there is no such setting"},
    {"{\"a/b~c\\n\": 1}", "/a~1b~0c?: there is no such setting"},
    {"{\"workers\": [\"1\"]}", "/workers: takes one value, not a list"},
    {"{\"workers\": 1.5}", "/workers: must be a string, an integer or an array of strings"},
    {"{\"workers\": null}", "/workers: must be"},
    {"{\"workers\": true}", "/workers: must be"},
    {"{\"workers\": {}}", "/workers: must be"},
    {"{\"fonts\": []}", "/fonts: 0 paths, not 1 to 64"},
    {"{\"fonts\": [1]}", "/fonts/0: must be a string"},
    {"{\"fonts\": [\"\"]}", "/fonts: an empty path"},
    {"{\"workers\": 1, \"workers\": 2}", "line 1, column 24: the same member twice"},
    {"[]", "the whole text: must be an object"},
    {"", "line 1, column 0: ends too early"},
    {"{\n  \"workers\" 1}", "line 2, column 13: not JSON"},
    {"{} x", "line 1, column 4: more text after its end"},
    {"{\"workers\": 99999999999999999999}", "a number too large"},
    {"{\"\xff\": 1}", "not UTF-8"},
};

Test(settings_load, names_file_place_and_rule_of_a_bad_file, .init = setup_file,
     .fini = teardown_file)
{
    for (size_t i = 0; i < sizeof BAD_FILES / sizeof *BAD_FILES; i++) {
        struct settings settings;
        struct error err = {0};

        config_write(BAD_FILES[i].text);
        cr_expect_eq(
            settings_load(&(struct settings_sources){.config_path = config_path}, &settings, &err),
            ST_INVALID, "%s", BAD_FILES[i].text);
        cr_expect_eq(strncmp(err.text, config_path, strlen(config_path)), 0, "%s", err.text);
        cr_expect_not_null(strstr(err.text, BAD_FILES[i].message), "%s: %s", BAD_FILES[i].text,
                           err.text);
    }
}

Test(settings_load, refuses_a_missing_and_a_large_file, .init = setup_file, .fini = teardown_file)
{
    struct settings settings;
    FILE *file;

    cr_expect_eq(
        settings_load(&(struct settings_sources){.config_path = "/nonexistent"}, &settings, NULL),
        ST_NOT_FOUND);
    file = fopen(config_path, "w");
    cr_assert_not_null(file);
    fprintf(file, "{%*s}", CONFIG_FILE_BYTES_MAX - 2, "");
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(
        settings_load(&(struct settings_sources){.config_path = config_path}, &settings, NULL),
        ST_OK);
    settings_clear(&settings);
    file = fopen(config_path, "a");
    cr_assert_not_null(file);
    fputc(' ', file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(
        settings_load(&(struct settings_sources){.config_path = config_path}, &settings, NULL),
        ST_TOO_LARGE);
}

Test(settings_load, refuses_a_setting_given_twice_and_too_many_paths, .init = setup)
{
    struct setting_option options[OPTIONS_MAX];
    struct settings_sources sources = {.options = options, .options_count = 2};
    struct settings settings;

    options[0] = options[1] = option_of("workers", "1");
    cr_expect_eq(settings_load(&sources, &settings, NULL), ST_INVALID);
    for (size_t i = 0; i < OPTIONS_MAX; i++)
        options[i] = option_of("fonts", "f");
    sources.options_count = 64;
    cr_expect_eq(settings_load(&sources, &settings, NULL), ST_OK);
    cr_expect_eq(settings.fonts.count, 64);
    settings_clear(&settings);
    sources.options_count = 65;
    cr_expect_eq(settings_load(&sources, &settings, NULL), ST_INVALID);
}

Test(settings_load, counts_the_paths_of_a_variable, .init = setup)
{
    static const char NAME[] = "TICKETPRESS_FONTS=";
    char variable[sizeof NAME + 2 * OPTIONS_MAX];
    const char *environment[] = {variable, NULL};
    struct settings_sources const sources = {.environment = environment};

    for (size_t count = 64; count <= 65; count++) {
        struct settings settings;
        size_t len = sizeof NAME - 1;

        memcpy(variable, NAME, len);
        for (size_t i = 0; i < count; i++) {
            variable[len++] = 'f';
            variable[len++] = ':';
        }
        variable[len - 1] = '\0';
        cr_expect_eq(settings_load(&sources, &settings, NULL), count == 64 ? ST_OK : ST_INVALID);
        settings_clear(&settings);
    }
}
