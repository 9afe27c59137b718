/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - the check between this host and another one, where tupleq-check --serve runs. Both greet
 * each other on a TCP connection, by which the first one then asks as it asks a second process
 * (partner.h).
 */
#ifndef TUPLEQ_CHECK_PEER_H
#define TUPLEQ_CHECK_PEER_H

#include "end.h"
#include "partner.h"
#include "report.h"

#define PEER_PORT "18517" /* of TCP */

/* Exit statuses of the check. */
enum peer_status {
	PEER_WORKS,
	PEER_NO_PORT = 1,  /* this host has no port */
	PEER_ABSENT = 3,   /* nobody answers there */
	PEER_VERSION = 4,  /* the program there has another version */
	PEER_NO_ROUTE = 5, /* the adapters don't reach each other */
	PEER_GONE = 6,     /* the peer went away in the middle */
};

/* The address of an end, as the other one gets it. All fields have the order of the host, which is
 * the same. */
struct peer_address {
	char device[64];
	uint32_t number;
	uint32_t link_layer;
	uint32_t mtu;
	uint32_t global; /* 1: paths have a global route */
	uint32_t lid, pkey;
	union ibv_gid gid;
	uint32_t initiator, target; /* QPNs */
	uint32_t ok;                /* 0: the end could not be made */
	char why[200];
};

/* Splits HOST[:PORT], also [ADDRESS]:PORT. Returns false if it is none. */
bool peer_split(const char *text, char host[256], char port[32]);

/* Sets how long reading and writing may take. */
void peer_limit(int socket);
/* Send and receive all of it. Return false if the other end is gone, or silent for too long. */
bool peer_send(int socket, const void *data, size_t len);
bool peer_receive(int socket, void *data, size_t len);

/* Exchanges versions. Returns PEER_WORKS, PEER_VERSION with the other one's in `version`, or
 * PEER_ABSENT if the other end is no tupleq-check. */
enum peer_status peer_greet(int socket, char version[24]);

/* Opens the end on a port and makes its queue pairs, and fills in the address, with the reason if
 * that fails. */
void peer_open(struct end *end, const struct port *port, int xrc_file,
	       struct peer_address *address);
/* Connects the end to the other one's. Returns false with a sentence in the end. */
bool peer_connect(struct end *end, const struct peer_address *other);

/* Checks the way to the peer, and measures it. */
enum peer_status peer_check(struct report *report, const struct port *port, const char *host);

/* Serves peers, one after the other, until a signal ends the process. `port`: NULL if this host
 * has none that works. Returns an exit status if it can't listen. */
int peer_serve(const struct port *port, const char *tcp_port);

#endif
