/*
 * Holds a thread of the press where it does its work, or makes that work fail. Linked with --wrap
 * into the unit tests only.
 */
#ifndef TICKETPRESS_TESTS_SUPPORT_HELD_CALLS_H
#define TICKETPRESS_TESTS_SUPPORT_HELD_CALLS_H

#include "domain/status.h"

#include <stddef.h>

enum held_call {
    HELD_QR_ENCODE, /* once a ticket */
    HELD_PDF_WRITE, /* once a bind */
    HELD_CALLS
};

/* Hold who makes the nth such call from now on, 1 being the next, until it is released. */
void held_calls_hold(enum held_call call, size_t nth);

/* Wait until a thread is held. */
void held_calls_await(enum held_call call);

/* Let it go on. */
void held_calls_release(enum held_call call);

/* Let the nth such call from now on fail. */
void held_calls_fail(enum held_call call, size_t nth, enum status status);

#endif
