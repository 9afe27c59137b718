/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "log.h"
#include "wait.h"

/* Milliseconds after which a question is asked again, because a datagram may be lost. */
#define AGAIN_MS 50
/* Milliseconds after which a question without an answer is given up: libtupleq's connect_timeout.
 */
#define GIVE_UP_MS 30000

/* Datagrams: a question has a zero address. */
struct datagram {
	char magic[8];
	struct tf_addr addr;
};
static const char magic[8] = "tqfi-ask";

struct tf_name {
	struct tf_addr service;
	struct datagram answer;
	int fd, end; /* the socket; becomes readable at the end */
	pthread_t thread;
	struct tf_name *prev, *next;
};

static struct {
	pthread_mutex_t lock;
	struct tf_name *list;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct sockaddr_in sockaddr_of(const struct tf_addr *service)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr = {service->port},
		.sin_port = htons((uint16_t)ntohl(service->number)),
	};
}

/* ---- answering ---- */

static void answer(const struct tf_name *name)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	struct datagram question;
	ssize_t n = recvfrom(name->fd, &question, sizeof(question), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len);

	if (n == sizeof(question) && !memcmp(question.magic, magic, sizeof(magic)))
		sendto(name->fd, &name->answer, sizeof(name->answer), MSG_DONTWAIT,
		       (struct sockaddr *)&from, len);
}

static void *answer_all(void *arg)
{
	const struct tf_name *name = arg;
	struct pollfd fds[] = {{.fd = name->fd, .events = POLLIN},
			       {.fd = name->end, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return NULL;
		answer(name);
	}
}

/* Opens the socket and starts the thread. Returns 0 or a negative errno. */
static int start(struct tf_name *name)
{
	struct sockaddr_in address = sockaddr_of(&name->service);
	int rc;

	name->end = eventfd(0, EFD_CLOEXEC);
	name->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (name->fd < 0 || name->end < 0 ||
	    bind(name->fd, (struct sockaddr *)&address, sizeof(address)))
		rc = -errno;
	else
		rc = -pthread_create(&name->thread, NULL, answer_all, name);
	if (rc) {
		close(name->end);
		close(name->fd);
	}
	return rc;
}

/* Returns true if an endpoint of this process has the name. With the lock. */
static bool is_given(const struct tf_addr *service)
{
	const struct tf_name *name;

	DL_FOREACH(names.list, name) {
		if (!memcmp(&name->service, service, sizeof(*service)))
			return true;
	}
	return false;
}

int tf_name_give(const struct tf_addr *service, const struct tf_addr *endpoint,
		 struct tf_name **given)
{
	char text[TF_ADDR_TEXT];
	struct tf_name *name;
	int rc = 0;

	*given = NULL;
	if (service->kind != TF_ADDR_SERVICE || !service->number)
		return 0;
	name = calloc(1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	name->service = *service;
	memcpy(name->answer.magic, magic, sizeof(magic));
	name->answer.addr = *endpoint;
	pthread_mutex_lock(&names.lock);
	if (!is_given(service)) {
		rc = start(name);
		if (!rc) {
			DL_APPEND(names.list, name);
			*given = name;
		}
	}
	pthread_mutex_unlock(&names.lock);
	if (!*given)
		free(name);
	if (rc) {
		tf_addr_print(service, text, sizeof(text));
		tf_log(FI_LOG_WARN, FI_LOG_EP_CTRL,
		       "An endpoint can't have the name %s: %s. It is reached by its address "
		       "alone.",
		       text, strerror(-rc));
	}
	return rc == -EADDRINUSE ? 0 : rc;
}

void tf_name_end(struct tf_name *name)
{
	const uint64_t one = 1;

	if (!name)
		return;
	pthread_mutex_lock(&names.lock);
	DL_DELETE(names.list, name);
	pthread_mutex_unlock(&names.lock);
	if (write(name->end, &one, sizeof(one)) == sizeof(one))
		pthread_join(name->thread, NULL);
	close(name->end);
	close(name->fd);
	free(name);
}

/* ---- asking ---- */

static int open_question(struct tf_question *question, const struct tf_addr *service)
{
	struct sockaddr_in address = sockaddr_of(service);

	question->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (question->fd < 0)
		return -errno;
	question->open = true;
	question->next = 0;
	question->until = tf_wait_until(GIVE_UP_MS);
	return connect(question->fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

int tf_question_ask(struct tf_question *question, const struct tf_addr *service,
		    struct tf_addr *found)
{
	struct datagram datagram = {.addr = {0}};
	int rc = question->open ? 0 : open_question(question, service);

	if (rc)
		goto end;
	/* Nobody may listen yet: the host says so, and is asked again. */
	if (recv(question->fd, &datagram, sizeof(datagram), 0) == sizeof(datagram) &&
	    !memcmp(datagram.magic, magic, sizeof(magic)) && tf_addr_is_valid(&datagram.addr) &&
	    datagram.addr.kind == TF_ADDR_ENDPOINT) {
		*found = datagram.addr;
		goto end;
	}
	if (!tf_wait_left(question->until)) {
		rc = -EHOSTUNREACH;
		goto end;
	}
	if (!question->next || !tf_wait_left(question->next)) {
		memcpy(datagram.magic, magic, sizeof(magic));
		memset(&datagram.addr, 0, sizeof(datagram.addr));
		/* A datagram that can't be sent is as one that is lost. */
		send(question->fd, &datagram, sizeof(datagram), 0);
		question->next = tf_wait_until(AGAIN_MS);
	}
	return -EAGAIN;
end:
	tf_question_end(question);
	return rc;
}

void tf_question_end(struct tf_question *question)
{
	if (question->open)
		close(question->fd);
	question->open = false;
}
