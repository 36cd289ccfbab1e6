/*
 * MUST(call): for calls that return 0 or an error number and that only misuse can make fail, such
 * as locking a mutex. A failure ends the process with the place and the number.
 */
#ifndef TICKETPRESS_DOMAIN_MUST_H
#define TICKETPRESS_DOMAIN_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        int const must_code = (call);                                                              \
                                                                                                   \
        if (must_code != 0) {                                                                      \
            fprintf(stderr, "%s:%d: %s failed with %d\n", __FILE__, __LINE__, #call, must_code);   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
