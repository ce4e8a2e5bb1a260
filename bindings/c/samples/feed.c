/* What happens to the keys of a store, followed by a consumer that stops and resumes. */
#include <hashmere_feed.h>
#include <hashmere_transaction.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANGES = 500 };

static const char name[] = "sample-feed";
static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static hm_feed *consumer(hm_store *store, const char *start) {
    const hm_feed_options options = {.size = sizeof options, .flags = HM_FEED_WITH_VALUES};
    hm_feed *feed;
    check(hm_feed_open(store, start, &options, &feed, &error));
    return feed;
}

static void show(const hm_feed_event *event) {
    static const char *const reasons[] = {"asked", "gone", "other feed", "gap"};
    static const char *const operations[] = {"read", "set", "delete", "touch", "evict", "expire"};
    switch (event->kind) {
    case HM_FEED_RESET: printf("reset: %s\n", reasons[event->reason]); break;
    case HM_FEED_SYNCED: printf("synced\n"); break;
    case HM_FEED_CLEAR: printf("clear\n"); break;
    default:
        if (event->transaction_len > 0 && event->transaction_index == 0)
            printf("in a transaction, %u of it:\n", event->transaction_len);
        printf("%s %.*s", operations[event->operation], (int)event->key.len, (const char *)event->key.data);
        if (event->value_state == HM_FEED_VALUE_BYTES)
            printf(" = %.*s", (int)event->value.len, (const char *)event->value.data);
        printf("\n");
    }
}

/* Shows what there is. */
static void drain(hm_feed *feed) {
    hm_feed_event event;
    while (check(hm_feed_next(feed, 0, &event, &error)) == HM_OK) show(&event);
}

static void set(hm_store *store, const char *key, const char *value) {
    check(hm_set(store, key, strlen(key), value, strlen(value), &error));
}

int main(void) {
    check(hm_remove(name, &error));
    const hm_options options = {.size = sizeof options, .flags = HM_FEED_VALUES, .feed = 1 << 20};
    hm_store *store;
    check(hm_open(name, &options, &store, &error));
    set(store, "alice", "100");

    hm_feed *feed = consumer(store, "start"); /* every key first */
    drain(feed);
    set(store, "bob", "7");
    hm_write_batch *batch;
    check(hm_write_batch_open(&batch, &error));
    check(hm_write_batch_set(batch, "alice", 5, "70", 2, NULL, &error));
    check(hm_write_batch_set(batch, "bob", 3, "37", 2, NULL, &error));
    check(hm_write_batch_commit(store, batch, NULL, NULL, &error));
    hm_write_batch_close(batch);
    check(hm_delete(store, "bob", 3, &error));
    drain(feed);

    char token[200];
    size_t len;
    check(hm_feed_token(feed, token, sizeof token, &len, &error)); /* a consumer keeps it where its data are */
    hm_feed_close(feed);
    set(store, "carol", "5");
    check(hm_clear(store, &error));
    printf("resumed\n");
    feed = consumer(store, token);
    drain(feed);

    const pid_t child = fork();
    if (child == 0) { /* the child goes on with the open store */
        for (int i = 0; i < CHANGES; i++) check(hm_incr(store, "hits", 4, 1, &(hm_counter){.initial = 1}, NULL, &error));
        _exit(0);
    }
    for (int i = 1; i <= CHANGES; i++) {
        hm_feed_event event;
        char wanted[20];
        const int digits = snprintf(wanted, sizeof wanted, "%d", i);
        if (check(hm_feed_next(feed, 60000, &event, &error)) != HM_OK || event.value.len != (size_t)digits ||
            memcmp(event.value.data, wanted, event.value.len) != 0) {
            fprintf(stderr, "change %d is missing\n", i);
            exit(1);
        }
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) exit(1);
    printf("%d changes of another process, in order\n", CHANGES);
    hm_feed_close(feed);
    check(hm_close(store, &error));
    check(hm_remove(name, &error));
    return 0;
}
