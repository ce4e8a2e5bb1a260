/* Several processes move money between accounts; the sum never changes, not even for a moment. */
#include <hashmere_transaction.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, STEPS = 500 };

static hm_error error;
static const hm_bytes accounts[] = {{"alice", 5}, {"bob", 3}, {"carol", 5}};

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

/* What is in an account, within a transaction. HM_E_CONFLICT: others have changed it since it was read. */
static int look(hm_transaction *t, hm_bytes account, long *amount) {
    char text[24] = "";
    size_t len;
    int rc = hm_transaction_get(t, account.data, account.len, text, sizeof text - 1, &len, &error);
    *amount = strtol(text, NULL, 10);
    return rc;
}

static void transfer(hm_transaction *t, hm_bytes from, hm_bytes to, long amount) {
    int rc;
    do { /* once more if others changed what it read: so no effects but through t */
        long there;
        rc = look(t, from, &there);
        if (rc == HM_OK && there < amount) {
            rc = check(hm_transaction_rollback(t, &error)); /* HM_MISMATCH: it looked too early */
            continue;
        }
        if (rc == HM_OK) rc = hm_transaction_incr_by(t, from.data, from.len, -amount, NULL, NULL, &error);
        if (rc == HM_OK) rc = hm_transaction_incr_by(t, to.data, to.len, amount, NULL, NULL, &error);
        if (rc != HM_E_CONFLICT) check(rc);
        rc = check(hm_transaction_commit(t, &error));
    } while (rc == HM_MISMATCH);
}

static void work(hm_store *store, int who) {
    hm_transaction *t;
    check(hm_transaction_open(store, &t, &error));
    for (int step = 0; step < STEPS; step++)
        transfer(t, accounts[(who + step) % 3], accounts[(who + step + 1) % 3], 1 + step % 5);
    hm_transaction_close(t);
}

static int add(void *user, size_t index, const hm_pair *item) {
    char text[24] = "";
    (void)index;
    if (item) snprintf(text, sizeof text, "%.*s", (int)item->value.len, (const char *)item->value.data);
    *(long *)user += strtol(text, NULL, 10);
    return 0;
}

static long sum(hm_store *store) {
    long total = 0;
    check(hm_get_many_snapshot(store, accounts, 3, add, &total, &error));
    return total;
}

int main(void) {
    hm_store *store;
    hm_write_batch *batch, *note;
    check(hm_open("sample-transactions", NULL, &store, &error));
    check(hm_write_batch_open(&batch, &error));
    for (int i = 0; i < 3; i++)
        check(hm_write_batch_set(batch, accounts[i].data, accounts[i].len, "100", 3, NULL, &error));
    check(hm_write_batch_commit(store, batch, NULL, NULL, &error));

    for (int who = 0; who < PROCESSES; who++) {
        if (fork() == 0) { /* the child goes on with the open store */
            work(store, who);
            _exit(0);
        }
    }
    for (int i = 0; i < 100; i++)
        if (sum(store) != 300) return 1;
    while (wait(NULL) > 0) {
    }
    printf("the sum of all accounts is %ld\n", sum(store));

    /* If alice still has what was seen, close her account and note it; else read what she has. */
    char seen[24];
    size_t len;
    check(hm_get(store, "alice", 5, seen, sizeof seen, &len, &error));
    const hm_condition same = {.key = accounts[0], .value = {seen, len}, .kind = HM_IF_VALUE};
    check(hm_write_batch_open(&note, &error));
    check(hm_write_batch_delete(note, "alice", 5, &error));
    check(hm_write_batch_set(note, "closed", 6, "alice", 5, NULL, &error));
    check(hm_write_batch_clear(batch, &error));
    check(hm_write_batch_get(batch, "alice", 5, &error));
    int rc = check(hm_write_batch_commit_if(store, &same, 1, note, batch, NULL, NULL, &error));
    printf("alice's account is closed: %s\n", rc == HM_OK ? "true" : "false");

    hm_write_batch_close(batch);
    hm_write_batch_close(note);
    check(hm_close(store, &error));
    check(hm_remove("sample-transactions", &error));
    return 0;
}
