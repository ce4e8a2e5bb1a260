/* The log: levels, lines and fields, long lines, full rings, draining to files, descriptors and functions, and the death of writers and
 * of drainers. */
#include "test.h"
/* Lines below info are not compiled, whatever level the log has. */
#define HM_LOG_LEVEL HM_LEVEL_INFO
#include <hashmere_log.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { MS = 300000 };

static hm_store *store;

static hm_log *opened(const char *name, hm_log_options options) {
    hm_log *log = NULL;
    options.size = sizeof options;
    options.on_no_drainer = HM_LOG_KEEP;
    EXPECT(HM_OK, hm_log_open(store, name, &options, &log, &error));
    return log;
}

static hm_log_stats stats_of(hm_log *log) {
    hm_log_stats stats = {.size = sizeof stats};
    EXPECT(HM_OK, hm_log_get_stats(log, &stats, &error));
    return stats;
}

/* What a drainer has shown. */
struct seen {
    uint64_t lines, lost, bytes, last_position;
    char texts[200][64];
    hm_line line;
    hm_field fields[5];
    int with_fields;
};

static void see(void *user, const hm_line *line) {
    struct seen *seen = user;
    CHECK(line->position > seen->last_position || seen->lines == 0);
    if (seen->lines < 200)
        snprintf(seen->texts[seen->lines], 64, "%.*s", (int)line->text.len, (const char *)line->text.data);
    seen->lines++;
    seen->lost += line->lost;
    seen->bytes += line->text.len;
    seen->last_position = line->position;
    seen->line = *line;
    if (line->field_count == 5) {
        memcpy(seen->fields, line->fields, sizeof seen->fields);
        seen->with_fields = memcmp(line->fields[0].text.data, "a b", 3) == 0 && memcmp(line->process.data, "test-log", 8) == 0;
    }
}

/* Drains all there is, and shows it. */
static void drain(hm_log *log, struct seen *seen) {
    const hm_drain_options options = {.size = sizeof options, .to = HM_TO_CALLBACK, .show = see, .user = seen};
    hm_drainer *drainer;
    uint64_t lines;
    memset(seen, 0, sizeof *seen);
    EXPECT(HM_OK, hm_log_drain(log, &options, &drainer, &error));
    EXPECT(HM_OK, hm_drainer_is_active(drainer, &error));
    EXPECT(HM_OK, hm_drainer_stop(drainer, &lines, &error));
    CHECK(lines + (seen->line.flags == HM_LINE_NOTE) == seen->lines);
}

static void opening(void) {
    hm_log *log = NULL, *other = NULL;
    const hm_log_options existing = {.size = sizeof existing, .flags = HM_LOG_EXISTING};
    EXPECT(HM_E_LOG_NOT_FOUND, hm_log_open(store, "log", &existing, &log, &error));
    CHECK(log == NULL);
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, NULL, NULL, &log, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, "\xff", NULL, &log, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, "log", NULL, NULL, &error));
    hm_log_options bad = {.size = sizeof bad, .rings = 5000};
    EXPECT(HM_E_LOG_BAD_OPTION, hm_log_open(store, "log", &bad, &log, &error));
    bad = (hm_log_options){.size = sizeof bad, .on_full = 9};
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, "log", &bad, &log, &error));
    bad = (hm_log_options){.size = sizeof bad, .flags = 1 << 9};
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, "log", &bad, &log, &error));
    bad = (hm_log_options){.size = sizeof bad, .level = 6};
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, "log", &bad, &log, &error));
    bad = (hm_log_options){.size = 3};
    EXPECT(HM_E_ARGUMENT, hm_log_open(store, "log", &bad, &log, &error));

    log = opened("log", (hm_log_options){.rings = 3, .ring_bytes = 8192});
    EXPECT(HM_OK, hm_log_open(store, "log", &existing, &other, &error));
    CHECK(stats_of(other).rings == 3 && stats_of(other).ring_bytes == 8192 && stats_of(other).line_max == 2048);
    hm_log_close(other);
    hm_log_close(NULL);
    EXPECT(HM_OK, hm_log_remove(store, "log", &error));
    EXPECT(HM_ABSENT, hm_log_remove(store, "log", &error));
    EXPECT(HM_E_LOG_REMOVED, hm_log_line(log, HM_LEVEL_INFO, "late", 4, &error));
    hm_log_close(log);
}

static int evaluated;
static const char *evaluate(void) {
    evaluated++;
    return "evaluated";
}

static void levels(void) {
    hm_log *log = opened("levels", (hm_log_options){0});
    int level = 9;
    EXPECT(HM_OK, hm_log_get_level(log, &level, &error));
    CHECK(level == HM_LEVEL_TRACE && hm_log_enabled(log, HM_LEVEL_TRACE));
    CHECK(!hm_log_enabled(NULL, HM_LEVEL_ERROR) && !hm_log_enabled(log, HM_LEVEL_OFF) && !hm_log_enabled(log, 6));

    /* Not compiled: the log would want it. */
    CHECK(HM_DEBUG(log, "%s", evaluate()) == HM_SKIPPED && HM_TRACE(log, "%s", evaluate()) == HM_SKIPPED && evaluated == 0);
    CHECK(HM_INFO(log, "%s %d", evaluate(), 7) == HM_OK && evaluated == 1);
    /* Compiled, and not wanted. */
    EXPECT(HM_OK, hm_log_set_level(log, HM_LEVEL_WARN, &error));
    CHECK(HM_INFO(log, "%s", evaluate()) == HM_SKIPPED && evaluated == 1);
    EXPECT(HM_SKIPPED, hm_log_line(log, HM_LEVEL_INFO, "no", 2, &error));
    EXPECT(HM_SKIPPED, hm_log_line_fields(log, HM_LEVEL_INFO, "no", 2, NULL, 0, &error));
    CHECK(HM_WARN(log, "%s", evaluate()) == HM_OK && HM_ERROR(log, "at %p: %5.2f", (void *)0, 2.5) == HM_OK);
    level = HM_LEVEL_ERROR;
    CHECK(HM_LOGF(log, level, "plain") == HM_OK);
    EXPECT(HM_OK, hm_log_set_level(log, HM_LEVEL_OFF, &error));
    CHECK(HM_ERROR(log, "%s", evaluate()) == HM_SKIPPED && evaluated == 2);
    EXPECT(HM_E_ARGUMENT, hm_log_set_level(log, 6, &error));
    hm_log_close(opened("levels", (hm_log_options){.level = HM_LEVEL_DEBUG}));
    EXPECT(HM_OK, hm_log_get_level(log, &level, &error));
    CHECK(level == HM_LEVEL_DEBUG);

    EXPECT(HM_E_ARGUMENT, hm_log_line(log, HM_LEVEL_OFF, "x", 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_line(log, 6, "x", 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_line(NULL, HM_LEVEL_INFO, "x", 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_line(log, HM_LEVEL_INFO, NULL, 1, &error));
    EXPECT(HM_OK, hm_log_line(log, HM_LEVEL_INFO, NULL, 0, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_printf(NULL, HM_LEVEL_INFO, &error, "%d", 1));
    EXPECT(HM_OK, hm_log_printf(log, HM_LEVEL_INFO, &error, "%d", 1));

    struct seen seen;
    drain(log, &seen);
    CHECK(seen.lines == 6 && strcmp(seen.texts[0], "evaluated 7") == 0 && strcmp(seen.texts[2], "at (nil):  2.50") == 0);
    CHECK(strcmp(seen.texts[4], "") == 0 && seen.line.level == HM_LEVEL_INFO && seen.line.pid == (uint32_t)getpid());
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "levels", &error));
}

static void fields(void) {
    hm_log *log = opened("fields", (hm_log_options){0});
    hm_field all[] = {hm_field_string("text", "a b"), hm_field_integer("integer", -7), hm_field_natural("natural", UINT64_MAX),
                      hm_field_real("real", 0.5), hm_field_truth("truth", 2)};
    EXPECT(HM_OK, hm_log_line_fields(log, HM_LEVEL_WARN, "slow", 4, all, 5, &error));
    struct seen seen;
    drain(log, &seen);
    CHECK(seen.lines == 1 && seen.with_fields && seen.line.level == HM_LEVEL_WARN);
    CHECK(seen.fields[0].kind == HM_FIELD_TEXT && seen.fields[1].integer == -7 && seen.fields[2].natural == UINT64_MAX);
    CHECK(seen.fields[3].real == 0.5 && seen.fields[4].truth == 1 && seen.fields[4].key.len == 5);

    EXPECT(HM_E_ARGUMENT, hm_log_line_fields(log, HM_LEVEL_WARN, "slow", 4, NULL, 1, &error));
    EXPECT(HM_E_ARGUMENT, hm_log_line_fields(log, HM_LEVEL_WARN, "slow", 4, all, SIZE_MAX, &error));
    all[0].kind = 9;
    EXPECT(HM_E_ARGUMENT, hm_log_line_fields(log, HM_LEVEL_WARN, "slow", 4, all, 5, &error));
    all[0] = hm_field_text("text", NULL, 3);
    EXPECT(HM_E_ARGUMENT, hm_log_line_fields(log, HM_LEVEL_WARN, "slow", 4, all, 5, &error));
    drain(log, &seen);
    CHECK(seen.lines == 0);
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "fields", &error));
}

static void long_lines(void) {
    enum { LONG = 40000 };
    static char text[LONG + 1];
    memset(text, 'x', LONG);
    hm_log *log = opened("long", (hm_log_options){0});
    /* Longer than the room on the stack, and than a piece of a ring. */
    CHECK(HM_INFO(log, "%.*s", 3000, text) == HM_OK && HM_INFO(log, "%s", text) == HM_OK);
    EXPECT(HM_E_LOG_TOO_LONG, hm_log_line_fields(log, HM_LEVEL_INFO, text, LONG, (hm_field[]){hm_field_integer("n", 1)}, 1, &error));
    hm_log_options refuse = {.size = sizeof refuse, .on_too_long = HM_LOG_REFUSE};
    hm_log *strict = opened("long", refuse);
    EXPECT(HM_E_LOG_TOO_LONG, hm_log_line(strict, HM_LEVEL_INFO, text, LONG, &error));
    hm_log_close(strict);
    struct seen seen;
    drain(log, &seen);
    CHECK(seen.lines == 1 + 3 && seen.bytes == 3000 + LONG && seen.line.flags == HM_LINE_CONTINUED);
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "long", &error));
}

/* Logs 20 lines of 500 bytes into a ring of 4 KiB without a drainer; returns how many of the calls succeeded. */
static int overfill(const char *name, uint64_t full, struct seen *seen) {
    hm_log_options options = {.ring_bytes = 4096, .on_full = full, .full_timeout_ms = full == HM_LOG_BLOCK ? 20 : 0};
    hm_log *log = opened(name, options);
    int yes = 0;
    for (int i = 0; i < 20; i++) {
        const int result = HM_INFO(log, "%02d %0497d", i, 0);
        yes += result == HM_OK;
        if (full == HM_LOG_BLOCK && result != HM_OK) {
            EXPECT(HM_E_LOG_FULL, hm_log_printf(log, HM_LEVEL_INFO, &error, "%02d %0497d", i, 0));
            CHECK(error.pid == 0);
            break;
        }
    }
    drain(log, seen);
    /* The next line reports what was lost before it. */
    CHECK(HM_INFO(log, "next") == HM_OK);
    const uint64_t before = seen->lost;
    struct seen after;
    drain(log, &after);
    seen->lost = before + after.lost;
    CHECK(after.lines == 1 && stats_of(log).lost == seen->lost);
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, name, &error));
    return yes;
}

static void full_rings(void) {
    struct seen seen;
    int yes = overfill("block", HM_LOG_BLOCK, &seen);
    CHECK(yes >= 5 && yes < 20 && seen.lines == (uint64_t)yes && seen.lost == 0 && memcmp(seen.texts[0], "00", 2) == 0);
    yes = overfill("drop", HM_LOG_DROP, &seen);
    CHECK(yes >= 5 && yes < 20 && seen.lines == (uint64_t)yes && seen.lost == 20 - (uint64_t)yes && memcmp(seen.texts[0], "00", 2) == 0);
    yes = overfill("overwrite", HM_LOG_OVERWRITE, &seen);
    CHECK(yes == 20 && seen.lines + seen.lost == 20 && seen.lost > 0 && memcmp(seen.texts[seen.lines - 1], "19", 2) == 0);
}

/* Reads a file of the folder of stores, and removes it. */
static char *take_file(const char *path) {
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    CHECK(remove(path) == 0);
    return text;
}

static int lines_in(const char *text) {
    int lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static char path[300];

static void outputs(void) {
    hm_log *log = opened("outputs", (hm_log_options){0});
    hm_drainer *drainer;
    hm_drain_options to = {.size = sizeof to, .to = HM_TO_FILE, .path = path};
    EXPECT(HM_OK, hm_log_drain(log, &to, &drainer, &error));
    const hm_field field = hm_field_string("path", "/index");
    EXPECT(HM_OK, hm_log_line_fields(log, HM_LEVEL_WARN, "slow", 4, &field, 1, &error));
    EXPECT(HM_OK, hm_log_flush(log, MS, &error));
    hm_drainer *other;
    EXPECT(HM_E_LOG_TAKEN, hm_log_drain(log, NULL, &other, &error));
    CHECK(error.pid == (uint32_t)getpid() && stats_of(log).drainer_pid == (uint64_t)getpid());
    EXPECT(HM_OK, hm_drainer_stop(drainer, NULL, &error));
    const char *text = take_file(path);
    CHECK(strstr(text, "Z WARN  test-log") && strstr(text, ": slow path=/index\n") && lines_in(text) == 1);

    /* JSON, and only what is important, into a pipe. */
    int ends[2];
    CHECK(pipe(ends) == 0);
    to = (hm_drain_options){.size = sizeof to, .to = HM_TO_FD, .fd = ends[1], .format = HM_LOG_JSON, .level = HM_LEVEL_WARN};
    CHECK(HM_INFO(log, "not written") == HM_OK && HM_WARN(log, "a \"b\"") == HM_OK);
    EXPECT(HM_OK, hm_log_drain(log, &to, &drainer, &error));
    close(ends[1]);
    EXPECT(HM_OK, hm_drainer_stop(drainer, NULL, &error));
    char read_back[600];
    const ssize_t got = read(ends[0], read_back, sizeof read_back - 1);
    CHECK(got > 0);
    read_back[got] = 0;
    CHECK(strstr(read_back, "\"level\":\"warn\"") && strstr(read_back, "\"text\":\"a \\\"b\\\"\"}\n") && lines_in(read_back) == 1);
    close(ends[0]);

    /* Rotation, before each line but the first here. */
    remove(path);
    to = (hm_drain_options){.size = sizeof to, .to = HM_TO_FILE, .path = path, .max_bytes = 1, .keep = 2};
    for (int i = 0; i < 4; i++) {
        CHECK(HM_INFO(log, "turn %d", i) == HM_OK);
        EXPECT(HM_OK, hm_log_drain(log, &to, &drainer, &error));
        EXPECT(HM_OK, hm_drainer_stop(drainer, NULL, &error));
    }
    char rotated[310];
    CHECK(strstr(take_file(path), "turn 3"));
    snprintf(rotated, sizeof rotated, "%s.1", path);
    CHECK(strstr(take_file(rotated), "turn 2"));
    snprintf(rotated, sizeof rotated, "%s.2", path);
    CHECK(strstr(take_file(rotated), "turn 1"));
    snprintf(rotated, sizeof rotated, "%s.3", path);
    CHECK(access(rotated, F_OK) != 0);

    /* What cannot be. A drainer that is handed out is stopped by then. */
    struct {
        int wanted;
        hm_drain_options options;
    } bad[] = {
        {HM_E_ARGUMENT, {.to = 9}},
        {HM_E_ARGUMENT, {.flags = 1 << 9}},
        {HM_E_ARGUMENT, {.format = 9}},
        {HM_E_ARGUMENT, {.level = 9}},
        {HM_E_ARGUMENT, {.to = HM_TO_FILE}},
        {HM_E_ARGUMENT, {.to = HM_TO_FILE, .path = ""}},
        {HM_E_ARGUMENT, {.to = HM_TO_FILE, .path = path, .keep = 3}},
        {HM_E_ARGUMENT, {.to = HM_TO_CALLBACK}},
        {HM_E_ARGUMENT, {.to = HM_TO_FD, .fd = -1}},
        {HM_E_LOG_OUTPUT, {.to = HM_TO_FD, .fd = 1000}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bad[i].options.size = sizeof bad[i].options;
        EXPECT(bad[i].wanted, hm_log_drain(log, &bad[i].options, &drainer, &error));
        CHECK(drainer == NULL && (bad[i].wanted != HM_E_LOG_OUTPUT || error.os_error != 0));
    }
    EXPECT(HM_OK, hm_drainer_stop(NULL, NULL, &error));
    EXPECT(HM_E_ARGUMENT, hm_drainer_is_active(NULL, &error));
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "outputs", &error));
}

static void following(void) {
    hm_log *log = opened("follow", (hm_log_options){0});
    hm_follower *follower;
    hm_line line;
    uint64_t missed = 9;
    for (int i = 0; i < 10; i++) CHECK(HM_INFO(log, "line %d", i) == HM_OK);
    struct seen seen;
    drain(log, &seen);
    EXPECT(HM_OK, hm_log_follow(log, 3, &follower, &error));
    for (int i = 7; i < 10; i++) {
        char wanted[16];
        snprintf(wanted, sizeof wanted, "line %d", i);
        EXPECT(HM_OK, hm_follower_next(follower, 0, &line, &error));
        CHECK(line.text.len == 6 && memcmp(line.text.data, wanted, 6) == 0);
    }
    EXPECT(HM_TIMEOUT, hm_follower_next(follower, 2, &line, &error));
    CHECK(HM_INFO(log, "one more") == HM_OK);
    drain(log, &seen);
    EXPECT(HM_OK, hm_follower_next(follower, MS, &line, &error));
    EXPECT(HM_OK, hm_follower_missed_bytes(follower, &missed, &error));
    CHECK(line.text.len == 8 && line.position == seen.last_position && missed == 0);
    hm_follower_close(follower);
    hm_follower_close(NULL);
    EXPECT(HM_OK, hm_log_follow(log, UINT64_MAX, &follower, &error));
    hm_log_close(log);
    for (int i = 0; i < 11; i++) EXPECT(HM_OK, hm_follower_next(follower, 0, &line, &error));
    EXPECT(HM_TIMEOUT, hm_follower_next(follower, 0, &line, &error));
    hm_follower_close(follower);
    EXPECT(HM_OK, hm_log_remove(store, "follow", &error));
}

/* Whether a descriptor is readable, or becomes so in time. */
static int is_readable(int fd, int ms) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, ms) == 1 && (one.revents & POLLIN) != 0;
}

static void *log_some(void *log) {
    for (int i = 0; i < 50; i++) CHECK(HM_INFO(log, "thread %d", i) == HM_OK);
    return NULL;
}

/* Draining and following in an event loop: one descriptor each, and no line is waited for anywhere else. */
static void loops(void) {
    hm_log *log = opened("loop", (hm_log_options){0});
    struct seen seen = {0};
    const hm_drain_options show = {.size = sizeof show, .to = HM_TO_CALLBACK, .show = see, .user = &seen};
    const hm_drain_options standby = {.size = sizeof standby, .flags = HM_DRAIN_STANDBY};
    hm_manual_drainer *manual = NULL, *second = NULL;
    hm_follower *follower;
    hm_line line;
    uint64_t lines = 0;
    int in = -1, out = -1;
    EXPECT(HM_E_ARGUMENT, hm_manual_drainer_open(log, &standby, &manual, &error));
    EXPECT(HM_OK, hm_manual_drainer_open(log, &show, &manual, &error));
    EXPECT(HM_E_LOG_TAKEN, hm_manual_drainer_open(log, &show, &second, &error));
    CHECK(second == NULL && error.pid == (uint32_t)getpid());
    EXPECT(HM_OK, hm_log_follow(log, 0, &follower, &error));
    EXPECT(HM_OK, hm_manual_drainer_ready_fd(manual, &in, &error));
    EXPECT(HM_OK, hm_follower_ready_fd(follower, &out, &error));
    CHECK(!is_readable(in, 20) && !is_readable(out, 20));
    for (int round = 0; round < 3; round++) {
        pthread_t other;
        uint64_t came = 0, followed = 0;
        CHECK(pthread_create(&other, NULL, log_some, log) == 0);
        while (came < 50) {
            CHECK(is_readable(in, MS));
            EXPECT(HM_OK, hm_manual_drainer_poll(manual, &lines, &error));
            came += lines;
        }
        CHECK(pthread_join(other, NULL) == 0);
        while (followed < 50) {
            CHECK(is_readable(out, MS));
            while (hm_follower_next(follower, 0, &line, &error) == HM_OK) followed++;
        }
        CHECK(came == 50 && followed == 50 && seen.lines == 50 * (uint64_t)(round + 1));
        CHECK(!is_readable(in, 20) && !is_readable(out, 20));
    }
    CHECK(HM_INFO(log, "the rest") == HM_OK);
    EXPECT(HM_OK, hm_manual_drainer_wait(manual, MS, &error));
    EXPECT(HM_OK, hm_manual_drainer_finish(manual, &lines, &error));
    CHECK(lines == 1 && seen.lines == 151 && stats_of(log).drainer_pid == 0);
    EXPECT(HM_OK, hm_manual_drainer_finish(NULL, NULL, &error));
    EXPECT(HM_OK, hm_manual_drainer_open(log, &show, &manual, &error));
    EXPECT(HM_OK, hm_manual_drainer_finish(manual, NULL, &error));
    hm_follower_close(follower);
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "loop", &error));
}

/* Without a drainer and without standard output a line is in the log, and the call says so. */
static void no_output(void) {
    hm_log *log = opened("closed", (hm_log_options){0}), *writing;
    const pid_t child = fork();
    if (child == 0) {
        const hm_log_options existing = {.size = sizeof existing, .flags = HM_LOG_EXISTING};
        EXPECT(HM_OK, hm_log_open(store, "closed", &existing, &writing, &error));
        close(1);
        EXPECT(HM_OK, hm_log_line(writing, HM_LEVEL_INFO, "kept", 4, &error));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct seen seen;
    drain(log, &seen);
    CHECK(seen.lines == 1 && strcmp(seen.texts[0], "kept") == 0);
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "closed", &error));
}

static int count_log(void *user, hm_bytes name) {
    *(int *)user += name.len == 4 && (memcmp(name.data, "list", 4) == 0 || memcmp(name.data, "more", 4) == 0);
    return 0;
}

static int stop_at_once(void *user, hm_bytes name) {
    CHECK(name.len > 0);
    return ++*(int *)user;
}

struct rings {
    int count;
    hm_ring last;
    char process[17];
};

static int keep_ring(void *user, const hm_ring *ring) {
    struct rings *rings = user;
    rings->count++;
    rings->last = *ring;
    snprintf(rings->process, sizeof rings->process, "%.*s", (int)ring->process.len, (const char *)ring->process.data);
    return 0;
}

static void *overfill_and_end(void *log) {
    int dropped = 0;
    for (int i = 0; i < 20; i++) dropped += HM_INFO(log, "%02d %0497d", i, 0) == HM_SKIPPED;
    CHECK(dropped > 5);
    return NULL;
}

/* What logs and rings there are. What a thread dropped last is reported under its own name when it has ended. */
static void listing(void) {
    hm_log *log = opened("list", (hm_log_options){.ring_bytes = 4096, .on_full = HM_LOG_DROP}), *more = opened("more", (hm_log_options){0});
    int logs = 0, once = 0;
    EXPECT(HM_OK, hm_each_log(store, count_log, &logs, &error));
    EXPECT(HM_OK, hm_each_log(store, stop_at_once, &once, &error));
    EXPECT(HM_E_ARGUMENT, hm_each_log(store, NULL, NULL, &error));
    CHECK(logs == 2 && once == 1);
    struct rings rings = {0};
    EXPECT(HM_OK, hm_each_ring(log, keep_ring, &rings, &error));
    CHECK(rings.count == 0);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, overfill_and_end, log) == 0 && pthread_join(other, NULL) == 0);
    EXPECT(HM_OK, hm_each_ring(log, keep_ring, &rings, &error));
    CHECK(rings.count == 1 && rings.last.thread == 1 && rings.last.pid == (uint32_t)getpid() && !rings.last.is_owned);
    CHECK(rings.last.bytes_waiting > 2000 && rings.last.unreported_drops == 0 && strncmp(rings.process, "test-log", 8) == 0);
    struct seen seen;
    drain(log, &seen);
    CHECK(seen.line.flags == HM_LINE_NOTE && seen.line.thread == 1 && seen.line.level == HM_LEVEL_WARN && seen.line.text.len == 0);
    CHECK(seen.lines - 1 + seen.lost == 20 && stats_of(log).lost == seen.lost);
    hm_log_close(log);
    hm_log_close(more);
    EXPECT(HM_OK, hm_log_remove(store, "list", &error));
    EXPECT(HM_OK, hm_log_remove(store, "more", &error));
}

static void reap(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A writer that is killed: its lines come out. It logs with what was opened before the fork, and so does the parent. */
static void dead_writer(void) {
    hm_log *log = opened("writer", (hm_log_options){0});
    CHECK(HM_INFO(log, "parent") == HM_OK);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++) CHECK(HM_INFO(log, "child %d", i) == HM_OK);
        kill(getpid(), SIGKILL);
    }
    reap(child);
    CHECK(HM_INFO(log, "parent again") == HM_OK);
    struct seen seen;
    drain(log, &seen);
    CHECK(seen.lines == 102 && strcmp(seen.texts[100], "child 99") == 0 && strcmp(seen.texts[101], "parent again") == 0);
    CHECK(stats_of(log).threads == 2 && stats_of(log).halves == 0);
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "writer", &error));
}

/* A drainer that is killed while others log is replaced by one that waits for it; no line is lost, and none is there twice. */
static void dead_drainer(void) {
    enum { LINES = 3000 };
    hm_log *log = opened("drainer", (hm_log_options){0});
    const hm_drain_options to = {.size = sizeof to, .to = HM_TO_FILE, .path = path};
    hm_drain_options standby = to;
    standby.flags = HM_DRAIN_STANDBY;
    const pid_t child = fork();
    if (child == 0) {
        hm_drainer *drainer;
        EXPECT(HM_OK, hm_log_drain(log, &to, &drainer, &error));
        pause();
    }
    const struct timespec moment = {0, 1000 * 1000};
    while (stats_of(log).drainer_pid == 0) nanosleep(&moment, NULL);
    hm_drainer *drainer, *other;
    EXPECT(HM_OK, hm_log_drain(log, &standby, &drainer, &error));
    EXPECT(HM_ABSENT, hm_drainer_is_active(drainer, &error));
    EXPECT(HM_E_LOG_TAKEN, hm_log_drain(log, &to, &other, &error));
    CHECK(error.pid == (uint32_t)child);
    for (int i = 0; i < LINES; i++) {
        CHECK(HM_INFO(log, "line %d of many", i) == HM_OK);
        if (i == LINES / 2) {
            while (stats_of(log).lines == 0) nanosleep(&moment, NULL);
            kill(child, SIGKILL);
            reap(child);
        }
    }
    for (int i = 0; i < MS && hm_drainer_is_active(drainer, &error) != HM_OK; i++) nanosleep(&moment, NULL);
    EXPECT(HM_OK, hm_drainer_stop(drainer, NULL, &error));
    const char *text = take_file(path);
    CHECK(lines_in(text) == LINES);
    for (int i = 0; i < LINES; i++) {
        char wanted[40];
        const int len = snprintf(wanted, sizeof wanted, ": line %d of many\n", i);
        text = strstr(text, ": ");
        CHECK(text != NULL && strncmp(text, wanted, (size_t)len) == 0);
        text += len;
    }
    hm_log_close(log);
    EXPECT(HM_OK, hm_log_remove(store, "drainer", &error));
}

int main(void) {
    store = new_store("log", 0);
    size_t len;
    EXPECT(HM_OK, hm_path(store, path, sizeof path, &len, &error));
    snprintf(path + len, sizeof path - len, ".lines");
    opening();
    dead_writer();
    dead_drainer();
    no_output();
    levels();
    fields();
    long_lines();
    full_rings();
    outputs();
    following();
    loops();
    listing();
    EXPECT(HM_OK, hm_close(store, &error));
    return 0;
}
