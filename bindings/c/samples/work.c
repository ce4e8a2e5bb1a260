/* Jobs are handed out to worker processes; one of them is killed, and what it was working on is done by another. */
#include <hashmere_queue.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 1000, ELEMENTS = 64, WORKERS = 2, PATIENCE_MS = 30000 };

/* A job that says that there are no more. */
#define NO_MORE UINT64_MAX

struct job {
    uint64_t number, square;
};

static const char name[] = "sample-work";
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

static hm_pool *pool;
static hm_queue *unused, *todo, *done;
static hm_endpoint *endpoint;

/* Each process does this for itself. */
static void join(hm_store *store) {
    const hm_pool_options sizes = {.size = sizeof sizes, .elements = ELEMENTS, .bytes = sizeof(struct job)};
    check(hm_pool_open(store, "jobs", &sizes, &pool, &error));
    check(hm_queue_open(pool, "free", NULL, &unused, &error)); /* the elements that are not in use */
    check(hm_queue_open(pool, "todo", NULL, &todo, &error));
    check(hm_queue_open(pool, "done", NULL, &done, &error));
    check(hm_endpoint_open(pool, &endpoint, &error));
}

static void leave(void) {
    hm_endpoint_close(endpoint);
    hm_queue_close(done);
    hm_queue_close(todo);
    hm_queue_close(unused);
    hm_pool_close(pool);
}

/* Starts a worker. With a pipe it says there that it has a job, and waits to be killed. */
static pid_t start(hm_store *store, int tell) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    join(store);
    for (;;) {
        hm_element element;
        if (check(hm_queue_pop_wait(endpoint, todo, PATIENCE_MS, &element, &error)) != HM_OK) fail("there is nothing to do");
        while (tell >= 0) {
            if (write(tell, "!", 1) != 1) fail("the parent does not listen");
            pause();
        }
        struct job *job = element.data;
        if (job->number == NO_MORE) {
            check(hm_queue_push(endpoint, &element, unused, &error));
            leave();
            _exit(0);
        }
        job->square = job->number * job->number;
        check(hm_queue_push(endpoint, &element, done, &error));
    }
}

/* Puts a job into `todo`, if there is an element for it. */
static bool put(uint64_t number) {
    hm_element element;
    if (check(hm_queue_pop(endpoint, unused, &element, &error)) != HM_OK) return false;
    *(struct job *)element.data = (struct job){number, 0};
    check(hm_queue_push(endpoint, &element, todo, &error));
    return true;
}

/* Endpoints out the jobs from `next` on and takes the results of all. As many as the pool has elements are under way at a time. */
static void hand_out(uint64_t next) {
    static bool was_done[JOBS];
    for (int i = 0; i < JOBS; i++) {
        while (next < JOBS && put(next)) next++;
        hm_element element;
        /* A pop that waits recovers the elements of crashed processes: each goes back to where it came from. */
        if (check(hm_queue_pop_wait(endpoint, done, PATIENCE_MS, &element, &error)) != HM_OK) fail("a job is lost");
        const struct job *job = element.data;
        if (job->number >= JOBS || job->square != job->number * job->number || was_done[job->number])
            fail("a job was done twice, or wrongly");
        was_done[job->number] = true;
        check(hm_queue_push(endpoint, &element, unused, &error));
    }
}

int main(void) {
    hm_store *store;
    check(hm_remove(name, &error));
    check(hm_open(name, NULL, &store, &error));

    /* The first worker gets the first job, and is killed with it. */
    int ends[2], status;
    if (pipe(ends) != 0) fail("no pipe");
    const pid_t victim = start(store, ends[1]);
    join(store);
    put(0);
    char said;
    uint64_t waiting;
    if (read(ends[0], &said, 1) != 1) fail("the worker has no job");
    kill(victim, SIGKILL);
    check(hm_queue_len(todo, &waiting, &error));
    if (waitpid(victim, &status, 0) != victim || !WIFSIGNALED(status) || waiting != 0) fail("the worker was not killed");
    puts("a worker was killed with a job in its endpoint");
    fflush(stdout); /* what is in the buffer now would be in that of each child */

    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) workers[i] = start(store, -1);
    hand_out(1);
    for (int i = 0; i < WORKERS; i++)
        if (!put(NO_MORE)) fail("an element is lost");
    for (int i = 0; i < WORKERS; i++)
        if (waitpid(workers[i], &status, 0) != workers[i] || status != 0) fail("a worker has failed");

    hm_pool_stats stats = {.size = sizeof stats};
    check(hm_pool_get_stats(pool, &stats, &error));
    check(hm_queue_len(unused, &waiting, &error));
    if (stats.recovered != 1 || waiting != ELEMENTS) fail("not every element is back");
    printf("%d jobs done by the others, none lost, none twice\n", JOBS);
    leave();
    check(hm_close(store, &error));
    check(hm_remove(name, &error));
    return 0;
}
