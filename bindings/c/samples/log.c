/* Three processes log into one stream, which a fourth writes to a file. */
#include <hashmere_log.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 3, LINES = 100 };

static const char name[] = "sample-log";
static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static void fail(const char *what, const char *line) {
    fprintf(stderr, "%s%s\n", what, line);
    exit(1);
}

static void work(hm_log *log) {
    for (int i = 0; i < LINES; i++) {
        if (HM_INFO(log, "line %d", i) != HM_OK) fail("a line was refused", "");
        if (i % 10 == 0) HM_DEBUG(log, "line %d, with all the details", i);
    }
}

/* Reads lines such as `2026-11-22T01:12:56.123456Z INFO  log[4711] 3: line 7`. Returns how many are those of debug. */
static int look(const char *path, const pid_t *workers) {
    static bool seen[PROCESSES][LINES];
    char line[200], last[28] = "", time[28], level[6];
    int debug = 0, lines = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) fail("there is no file ", path);
    while (fgets(line, sizeof line, file)) {
        int pid, number, worker = 0;
        if (sscanf(line, "%27s %5s %*[^[][%d] %*d: line %d\n", time, level, &pid, &number) != 4)
            fail("not a line of the log: ", line);
        if (strcmp(time, last) < 0) fail("out of the order of time: ", line);
        memcpy(last, time, sizeof last);
        if (strcmp(level, "DEBUG") == 0) {
            debug++;
            continue;
        }
        while (worker < PROCESSES && workers[worker] != pid) worker++;
        if (strcmp(level, "INFO") != 0 || worker == PROCESSES || number < 0 || number >= LINES || seen[worker][number])
            fail("this was not logged, or it is there twice: ", line);
        seen[worker][number] = true;
        lines++;
    }
    fclose(file);
    if (lines != PROCESSES * LINES) fail("lines are lost", "");
    return debug;
}

int main(void) {
    hm_store *store;
    hm_log *log;
    check(hm_remove(name, &error));
    check(hm_open(name, NULL, &store, &error));
    const hm_log_options options = {.size = sizeof options, .level = HM_LEVEL_INFO};
    check(hm_log_open(store, "log", &options, &log, &error));

    char path[64];
    snprintf(path, sizeof path, "/tmp/hashmere-%s-%d.log", name, (int)getpid());
    const hm_drain_options to_file = {.size = sizeof to_file, .to = HM_TO_FILE, .path = path};
    hm_drainer *drainer;
    check(hm_log_drain(log, &to_file, &drainer, &error)); /* without one, lines go to standard output */
    pid_t workers[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        workers[i] = fork();
        if (workers[i] == 0) { /* the child goes on with the open log */
            work(log);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        if (waitpid(workers[i], &status, 0) != workers[i] || status != 0) fail("a worker has failed", "");
    }
    check(hm_drainer_stop(drainer, NULL, &error)); /* what was not written yet is written now */

    const int debug = look(path, workers);
    remove(path);
    printf("%d lines of %d processes, none lost, none twice\n", PROCESSES * LINES, PROCESSES);
    printf("in the order of time, with levels and process ids\n");
    printf("the debug lines were not wanted: %d\n", debug);
    hm_log_close(log);
    check(hm_close(store, &error));
    check(hm_remove(name, &error));
    return 0;
}
