/* SPDX-License-Identifier: BSD-3-Clause */
/* The end that is asked. */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Serves a peer. Objects of its own, so that a failure has no consequences for the next peer. */
static void serve(int socket, const struct port *port)
{
	struct peer_address ours = {.why = "there is no RDMA port that is up"}, theirs;
	struct end end = {0};
	char version[24];
	FILE *file;

	peer_limit(socket);
	if (peer_greet(socket, version) != PEER_WORKS)
		return;
	file = tmpfile();
	if (port)
		peer_open(&end, port, file ? fileno(file) : -1, &ours);
	if (peer_send(socket, &ours, sizeof(ours)) &&
	    peer_receive(socket, &theirs, sizeof(theirs)) && ours.ok && theirs.ok)
		partner_serve(&end, socket, peer_connect(&end, &theirs));
	end_close(&end);
	if (file)
		fclose(file);
}

/* Returns a socket that listens, or -1 with errno. */
static int listen_at(const char *tcp_port)
{
	const struct addrinfo hints = {
		.ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	const struct addrinfo hints4 = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *at;
	int fd = -1, error;

	/* A socket of IPv6 takes connections of IPv4, too. */
	for (int i = 0; i < 2 && fd < 0; i++) {
		if (getaddrinfo(NULL, tcp_port, i ? &hints4 : &hints, &at)) {
			errno = EINVAL;
			continue;
		}
		fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		if (fd >= 0)
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
		if (fd >= 0 && (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN))) {
			error = errno;
			close(fd);
			errno = error;
			fd = -1;
		}
		freeaddrinfo(at);
	}
	return fd;
}

int peer_serve(const struct port *port, const char *tcp_port)
{
	int listener = listen_at(tcp_port), peer;

	if (listener < 0) {
		fprintf(stderr, "tupleq-check: TCP port %s can't be served: %s.\n", tcp_port,
			strerror(errno));
		return EXIT_FAILURE;
	}
	printf("tupleq-check serves peers on TCP port %s.\n", tcp_port);
	fflush(stdout);
	while ((peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR ||
	       errno == ECONNABORTED) {
		if (peer < 0)
			continue;
		serve(peer, port);
		close(peer);
	}
	fprintf(stderr, "tupleq-check: No peer can be served any more: %s.\n", strerror(errno));
	close(listener);
	return EXIT_FAILURE;
}
