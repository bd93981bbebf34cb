/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_H
#define PROFILE_H
/*
 * What the flows of one server have in common, learned from facts alone: how long its tickets are,
 * how its flight is cut into records, the usual length of EncryptedExtensions. A server is an
 * address, port and server name; what all names of an address and port have in common is kept as
 * well, for names with few flows. Learning and merging add flows in any order with the same result;
 * memory grows with servers up to PROFILES_MAX, never with flows.
 *
 * A deploy changes what a server sends: each number that was learned holds for the time in which it
 * was seen (tally.h), and a flow is judged by those that held when it began.
 */
#include "facts.h"
#include "tally.h"
#include "tls13.h"

/*
 * Servers with a profile of their own, at about a kilobyte each. When there are more, those whose
 * hash ends in enough zero bits stay, so that which ones stay does not depend on the order either.
 */
enum { PROFILES_MAX = 16384 };

/* Of one server; read-only for everyone but profile.c. */
struct profile {
    const struct profile *wider; /* of the address and port; NULL in that one itself */
    char *server_name;           /* NULL: none sent; in a wide one: all */
    bool is_wide;                /* of an address and port, whatever the name */
    bool is_new;                 /* flows were learned, not only merged from elsewhere */
    struct endpoint server;
    uint64_t flows;                   /* with a TLS 1.3 ServerHello */
    int64_t first_ns, last_ns;        /* start of the earliest and the latest of them */
    uint32_t flights[FLIGHT_ONE + 1]; /* how many had which shape */
    struct tally identities;          /* lengths of the tickets that clients offered */
    struct tally rests;       /* ticket_rest() of records that fit the ticket just offered */
    struct tally unasked;     /* record lengths sent behind Finished before any request */
    struct tally extensions;  /* of EncryptedExtensions without early data: the length in the low
                                 16 bits (EXTENSIONS_LEN_MASK), what else decides on it above */
    struct tally one_records; /* of resumed flights in one record without early data, likewise */
};

enum { EXTENSIONS_LEN_MASK = 0xffff };

struct profiles; /* of all servers */

/* NULL without memory. */
struct profiles *profiles_open(void);
void profiles_close(struct profiles *p);

/* Adds what one flow shows of its server. */
MUST_USE enum status profiles_learn(struct profiles *p, const struct facts *f);

/*
 * Adds what was learned elsewhere, or at another time, of a server: its name may live anywhere and
 * is copied. level is profiles_level() of where it comes from.
 */
MUST_USE enum status profiles_merge(struct profiles *p, const struct profile *from, unsigned level);

/* Adds all of `from`, and what was new there is new here. */
MUST_USE enum status profiles_merge_all(struct profiles *p, const struct profiles *from);

/* How far servers had to be left out: goes with the profiles when they are kept. */
unsigned profiles_level(const struct profiles *p);

/* Ends the learning: call after the last profiles_learn() or _merge() and before profiles_find().
 */
void profiles_settle(struct profiles *p);

/*
 * The profile of the flow's server, that of its address and port when the name has none; NULL when
 * nothing was learned. Lives as long as p.
 */
const struct profile *profiles_find(const struct profiles *p, const struct facts *f);

/* The profile of a server name, or of all names; NULL when there is none. */
const struct profile *profiles_of(const struct profiles *p, const struct endpoint *server,
                                  const char *name, bool all_names);

/* Number of profiles, and each of them in a fixed order: by address, port, name; for the store. */
size_t profiles_count(const struct profiles *p);
const struct profile *profiles_at(const struct profiles *p, size_t index);

/*
 * Whether a record length was a ticket in other flows of that server around that time, or is one
 * by the length of tickets that clients brought back. p may be NULL: false.
 */
bool profile_knows_ticket(const struct profile *p, uint32_t len, uint32_t overhead, int64_t at_ns);

/* Whether enough flows of around that time show that a length is none of the server's tickets. */
bool profile_knows_tickets(const struct profile *p, int64_t at_ns);

/*
 * What the length of EncryptedExtensions, or of a resumed flight in one record, says of the flow:
 * as usual without early data, or longer by the 4 bytes of its acceptance (RFC 8446 4.2.10).
 */
enum flight_says { FLIGHT_SAYS_NOTHING, FLIGHT_SAYS_REJECTED, FLIGHT_SAYS_ACCEPTED };
enum flight_says profile_flight_says(const struct profile *p, const struct facts *f,
                                     const struct tls13 *h);

#endif
