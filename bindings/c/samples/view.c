/* A value read in place, and one written in place. */
#include <hashmere.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20 };

static hm_error error;

static int check(int result) {
    if (result > 0) {
        fprintf(stderr, "error %d: %s\n", error.code, error.text);
        exit(1);
    }
    return result;
}

static int first_byte(hm_store *store, const char *key) {
    hm_view view;
    check(hm_view_acquire(store, key, strlen(key), &view, &error));
    int first = *(const unsigned char *)view.data;
    hm_view_release(&view);
    return first;
}

int main(void) {
    hm_store *store;
    check(hm_open("sample-view", NULL, &store, &error));

    char *frame = malloc(BYTES);
    memset(frame, 1, BYTES);
    check(hm_set(store, "frame", 5, frame, BYTES, &error));

    hm_view view;
    check(hm_view_acquire(store, "frame", 5, &view, &error));
    printf("a view of %zu bytes, %s\n", view.len, view.zero_copy ? "not copied" : "copied");
    memset(frame, 2, BYTES);
    check(hm_set(store, "frame", 5, frame, BYTES, &error));
    printf("overwritten; the view still begins with %d, the store with %d\n", *(const unsigned char *)view.data,
           first_byte(store, "frame"));
    hm_view_release(&view);
    free(frame);

    hm_reservation room;
    check(hm_reserve(store, "squares", 7, 8, NULL, &room, &error));
    for (int i = 0; i < 8; i++)
        ((unsigned char *)room.data)[i] = (unsigned char)(i * i);
    check(hm_reservation_commit(&room, NULL, &error));

    check(hm_view_acquire(store, "squares", 7, &view, &error));
    printf("written in place:");
    for (size_t i = 0; i < view.len; i++)
        printf(" %d", ((const unsigned char *)view.data)[i]);
    printf("\n");
    hm_view_release(&view);

    check(hm_close(store, &error));
    check(hm_remove("sample-view", &error));
    return 0;
}
