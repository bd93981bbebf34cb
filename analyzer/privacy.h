/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PRIVACY_H
#define PRIVACY_H
/*
 * What of clients and names is stored: in full, cut, as a keyed hash, or not at all. Everything
 * that needs the true value (region, leg, policy rule, neighbours) is resolved before.
 *
 * A hash is the first half of HMAC-SHA256 (RFC 2104, FIPS 180-4). It hides only as long as the key
 * is not known: there are so few IPv4 addresses and names that who has the key can try them all.
 * Therefore the key never lies in the database.
 */
#include "facts.h"
#include "rules.h"

enum shown { SHOWN_FULL, SHOWN_PREFIX, SHOWN_HASH, SHOWN_NONE };

enum { PRIVACY_KEY_SIZE = 32, PRIVACY_HASH_SIZE = 33 /* hex digits and terminator */ };

/* { 0 } hides nothing. */
struct privacy {
    enum shown client_addr; /* addresses of clients */
    enum shown sni;         /* server names; never SHOWN_PREFIX */
    uint8_t key[PRIVACY_KEY_SIZE];
    const struct rules *rules; /* kept of names that are hidden; not owned; NULL = none */
};

/* "full", "prefix", "hash", "none"; false for other words. */
bool shown_parse(const char *word, enum shown *ret_shown);
const char *shown_text(enum shown shown);

/* Whether anything is hashed: session identities are as soon as addresses are not shown in full. */
bool privacy_needs_key(const struct privacy *p);

/*
 * Reads the key: a hash of what the file holds, without white space at its end. STATUS_IO: no such
 * file (errno); STATUS_REFUSED: fewer than 16 bytes or more than 4096.
 */
MUST_USE enum status privacy_read_key(struct privacy *p, const char *path);

/* Makes a file with a random key that only its owner may read. STATUS_IO (errno): not made. */
MUST_USE enum status privacy_make_key(const char *path);

/* A text that tells keys apart and nothing of the key. */
const char *privacy_key_check(const struct privacy *p, char text[PRIVACY_HASH_SIZE]);

/*
 * Hides in the facts of a finished flow, before anything is learned from them or kept: the server
 * name, of which early_data_rule keeps the rule that fits it, and, where addresses are not shown in
 * full, what identifies a session (tickets, session ids, hellos), which stays equal to itself.
 * STATUS_NO_MEMORY.
 */
MUST_USE enum status privacy_hide_texts(const struct privacy *p, struct facts *f);

/*
 * A client's address as it is stored: itself, its network (/24, /48) with zeros behind, 16 bytes of
 * keyed hash, or zeros.
 */
struct address privacy_address(const struct privacy *p, const struct address *a);

/* Room for the text of an address as it is stored: address, address/bits, or hash. */
enum { SHOWN_ADDRESS_SIZE = ADDRESS_TEXT_SIZE + 4 };

/* That as text; NULL where addresses are not stored. Returns buffer or NULL. */
const char *privacy_address_text(const struct privacy *p, const struct address *a,
                                 char buffer[SHOWN_ADDRESS_SIZE]);

/* "203.0.113.0/24", "2001:db8:7::/48"; returns buffer. */
const char *address_network_text(const struct address *a, char buffer[SHOWN_ADDRESS_SIZE]);

/*
 * Whether the side called server may be the client, since only the order of packets or two high
 * ports say so: then its address is as private.
 */
bool privacy_server_is_guess(const struct facts *f);

/*
 * A copy of facts without what addresses could be told by; nothing in it is owned. Texts point into
 * the original.
 */
struct facts privacy_stored_facts(const struct privacy *p, const struct facts *f);

/* Reads an address or the hash of one as stored; false for anything else (NULL, a network). */
bool privacy_parse_client(const char *text, struct address *ret_address);

#endif
