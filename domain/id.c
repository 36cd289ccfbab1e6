#include "domain/id.h"

#include "domain/batch.h"
#include "domain/characters.h"
#include "domain/utf8.h"

#include <string.h>

static bool has_allowed_length(struct text id)
{
    return id.len >= 1 && id.len <= ID_BYTES_MAX;
}

/* Ids become parts of paths and file names. */
static bool is_path_step(struct text id)
{
    return (id.len == 1 && id.data[0] == '.') || (id.len == 2 && memcmp(id.data, "..", 2) == 0);
}

static bool is_event_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
}

bool id_is_event(struct text id)
{
    if (!has_allowed_length(id) || is_path_step(id))
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!is_event_char(id.data[i]))
            return false;
    return true;
}

static bool is_ticket_char(uint32_t code_point)
{
    return code_point != '/' && code_point != '\\' && !character_is_control(code_point) &&
           !character_is_white_space(code_point);
}

bool id_is_ticket(struct text id)
{
    size_t step;

    if (!has_allowed_length(id) || is_path_step(id))
        return false;
    for (size_t at = 0; at < id.len; at += step) {
        uint32_t code_point = 0;

        step = utf8_decode(id.data + at, id.len - at, &code_point);
        if (step == 0 || !is_ticket_char(code_point))
            return false;
    }
    return true;
}
