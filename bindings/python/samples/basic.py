"""The first steps: open, set, get, scan, delete, and what an error looks like."""

import hashmere

store = hashmere.open("sample-basic")
store.clear()

store["user:7"] = "Ada"
print("user:7 is", store["user:7"].decode())
if store.get("user:8") is None:
    print("user:8 is not there")

store.replace("user:7", "Grace")
print(f"now user:7 is {store['user:7'].decode()}, {store.value_len('user:7')} bytes")

store.add("user:9", "Edsger")
print("keys:", *sorted(key.decode() for key in store.scan_keys(prefix="user:")))  # a scan has no order

del store["user:9"]
print(f"deleted user:9, {len(store)} key is left")
store.close()
hashmere.remove("sample-basic")

try:
    hashmere.open("sample-basic", create=False)
except hashmere.Error as error:
    print(f"error {error.code} ({type(error).__name__})")
