"""A value read in place, and one written in place."""

import hashmere

SIZE = 1 << 20

store = hashmere.open("sample-view")
store["frame"] = b"\x01" * SIZE

view = store.view("frame")
assert view is not None
with view:
    copied = not (isinstance(view.obj, hashmere.View) and view.obj.zero_copy)
    print(f"a view of {len(view)} bytes,", "copied" if copied else "not copied")
    store["frame"] = b"\x02" * SIZE
    print(f"overwritten; the view still begins with {view[0]}, the store with {store['frame'][0]}")

with store.reserve("squares", 8) as room:
    for i in range(8):
        room[i] = i * i

print("written in place:", *(store.view("squares") or b""))
store.remove()
