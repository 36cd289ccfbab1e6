/*
 * Read before every source by clang-tidy only, for what its analyzer cannot see: error_set hands
 * its status back, so no path goes on as after ST_OK.
 */
#ifndef TICKETPRESS_TESTS_SUPPORT_ANALYZER_H
#define TICKETPRESS_TESTS_SUPPORT_ANALYZER_H

#include "domain/status.h"

#define error_set(err, status, ...) ((void)error_set(err, status, __VA_ARGS__), (status))

#endif
