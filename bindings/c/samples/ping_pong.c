/* Two processes pass one element to and fro; it carries a number that each of them checks and counts on. */
#include <hashmere_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PASSES = 20000, PATIENCE_MS = 30000 };

static const char name[] = "sample-ping-pong";
static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* A pool, its queues and an endpoint, as each process has them. */
struct player {
    hm_pool *pool;
    hm_queue *unused, *there, *back;
    hm_endpoint *endpoint;
};

static struct player join(hm_store *store) {
    const hm_pool_options one_of_eight_bytes = {.size = sizeof one_of_eight_bytes, .elements = 1, .bytes = 8};
    struct player me;
    check(hm_pool_open(store, "ball", &one_of_eight_bytes, &me.pool, &error));
    check(hm_queue_open(me.pool, "free", NULL, &me.unused, &error)); /* the elements that are not in use */
    check(hm_queue_open(me.pool, "there", NULL, &me.there, &error));
    check(hm_queue_open(me.pool, "back", NULL, &me.back, &error));
    check(hm_endpoint_open(me.pool, &me.endpoint, &error));
    return me;
}

static void leave(struct player *me) {
    hm_endpoint_close(me->endpoint);
    hm_queue_close(me->back);
    hm_queue_close(me->there);
    hm_queue_close(me->unused);
    hm_pool_close(me->pool);
}

/* Takes the ball as long as it is in play, finds in it the number that must be next, and passes on the one behind that. */
static void play(struct player *me, hm_queue *from, hm_queue *to, uint64_t first) {
    for (uint64_t number = first; number < PASSES; number += 2) {
        hm_element ball;
        if (check(hm_queue_pop_wait(me->endpoint, from, PATIENCE_MS, &ball, &error)) != HM_OK) fail("the other player has gone");
        uint64_t *carried = ball.data;
        if (*carried != number) fail("the ball carries another number");
        *carried = number + 1;
        check(hm_queue_push(me->endpoint, &ball, number + 1 < PASSES ? to : me->unused, &error));
    }
}

int main(void) {
    hm_store *store;
    check(hm_remove(name, &error));
    check(hm_open(name, NULL, &store, &error));
    const pid_t partner = fork();
    if (partner == 0) { /* a child goes on with the store, and opens the pool for itself */
        struct player me = join(store);
        play(&me, me.there, me.back, 0);
        leave(&me);
        _exit(0);
    }

    struct player me = join(store);
    hm_element ball;
    if (check(hm_queue_pop(me.endpoint, me.unused, &ball, &error)) != HM_OK) fail("the pool is empty");
    *(uint64_t *)ball.data = 0;
    check(hm_queue_push(me.endpoint, &ball, me.there, &error));
    play(&me, me.back, me.there, 1);
    int status;
    if (waitpid(partner, &status, 0) != partner || status != 0) fail("the other player has failed");
    if (check(hm_queue_pop(me.endpoint, me.unused, &ball, &error)) != HM_OK) fail("the ball is lost");
    if (*(uint64_t *)ball.data != PASSES) fail("the ball was passed on too often, or too seldom");

    printf("two processes passed one element %d times\n", PASSES);
    printf("it carried every number from 0 to %d\n", PASSES - 1);
    leave(&me); /* the endpoint gives the ball back */
    check(hm_close(store, &error));
    check(hm_remove(name, &error));
    return 0;
}
