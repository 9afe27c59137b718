/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of coll/tupleq's messages: data of each length arrive unchanged, whatever their bits,
 * and in whatever order the words do. */
#include "../softhca/check.h"
#include "coll/words.h"

enum { MOST = 1100, STAMP = 0x80000007 };

static unsigned char data[MOST], got[MOST + 8];
static uint64_t message[MOST], memory[MOST];

static size_t words_of(size_t len)
{
	return mca_coll_tupleq_words_size(len) / sizeof(uint64_t);
}

/* Makes a message of data whose bytes are all alike, or mixed. */
static void make(size_t len, int byte)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(byte < 0 ? i * 151 + len : (size_t)byte);
	memset(message, 0, sizeof(message));
	mca_coll_tupleq_words_put(message, data, len, STAMP);
}

static void take(size_t len)
{
	memset(got, 0x5a, sizeof(got));
	mca_coll_tupleq_words_take(memory, got, len);
	t_true(!memcmp(got, data, len), "%zu bytes aren't those that were sent", len);
	for (size_t i = 0; i < 8; i++)
		t_true(got[len + i] == 0x5a, "%zu bytes: byte %zu behind them is overwritten", len,
		       i);
	for (size_t i = 0; i < MOST; i++)
		t_true(!memory[i], "%zu bytes: word %zu isn't 0 afterwards", len, i);
}

static void each_length(void **state)
{
	static const int bytes[] = {-1, 0, 1, 0xfe, 0xff};

	(void)state;
	for (size_t b = 0; b < sizeof(bytes) / sizeof(bytes[0]); b++)
		for (size_t len = 0; len <= MOST - 8; len++) {
			size_t arrived = 0;

			make(len, bytes[b]);
			memcpy(memory, message, sizeof(memory));
			t_true(!memory[words_of(len)], "%zu bytes: more words than their size",
			       len);
			t_eq(mca_coll_tupleq_words_stamp(memory), STAMP);
			t_true(mca_coll_tupleq_words_poll(memory, len, &arrived),
			       "%zu bytes haven't arrived", len);
			take(len);
		}
}

/* Each word that is missing is noticed, as the last one to come. */
static void each_word_is_awaited(void **state)
{
	static const size_t lengths[] = {0, 1, 8, 9, 255, 256, 257, 264, 1024};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = lengths[i];

		make(len, 0);
		for (size_t missing = 0; missing < words_of(len); missing++) {
			size_t arrived = 0;

			memcpy(memory, message, sizeof(memory));
			memory[missing] = 0;
			t_true(!mca_coll_tupleq_words_poll(memory, len, &arrived),
			       "%zu bytes: word %zu isn't awaited", len, missing);
			memory[missing] = message[missing];
			t_holds(mca_coll_tupleq_words_poll(memory, len, &arrived));
			take(len);
		}
	}
}

/* A kilobyte takes little more than itself. */
static void stamps_are_few(void **state)
{
	(void)state;
	t_eq(mca_coll_tupleq_words_size(0), 8);
	t_eq(mca_coll_tupleq_words_size(8), 16);
	t_eq(mca_coll_tupleq_words_size(256), 264);
	t_eq(mca_coll_tupleq_words_size(1024), 1056);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length),
		cmocka_unit_test(each_word_is_awaited),
		cmocka_unit_test(stamps_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
