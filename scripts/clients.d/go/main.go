// gomemcache does its usual work; values are compared.
package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

func check(what string, is bool) {
	if !is {
		fmt.Fprintln(os.Stderr, "gomemcache:", what)
		os.Exit(1)
	}
}

func main() {
	client := memcache.New("127.0.0.1:" + os.Args[1])
	client.Timeout = 5 * time.Second
	check("set", client.Set(&memcache.Item{Key: "go", Value: []byte("value"), Flags: 7, Expiration: 100}) == nil)
	item, err := client.Get("go")
	check("get", err == nil && string(item.Value) == "value" && item.Flags == 7)
	item.Value = []byte("next")
	check("cas", client.CompareAndSwap(item) == nil)
	check("lost cas", client.CompareAndSwap(item) == memcache.ErrCASConflict)
	check("add", client.Add(&memcache.Item{Key: "go", Value: []byte("x")}) == memcache.ErrNotStored)
	check("replace", client.Replace(&memcache.Item{Key: "go", Value: []byte("5")}) == nil)
	up, err := client.Increment("go", 7)
	check("incr", err == nil && up == 12)
	down, err := client.Decrement("go", 20)
	check("decr", err == nil && down == 0)
	check("touch", client.Touch("go", 10) == nil)
	check("delete", client.Delete("go") == nil)
	_, err = client.Get("go")
	check("miss", err == memcache.ErrCacheMiss)
	var keys []string
	long := bytes.Repeat([]byte("v"), 500000)
	for i := 0; i < 300; i++ {
		key := fmt.Sprintf("go%d", i)
		keys = append(keys, key)
		check("set many", client.Set(&memcache.Item{Key: key, Value: long[:i*i]}) == nil)
	}
	all, err := client.GetMulti(append(keys, "none"))
	check("get multi", err == nil && len(all) == 300)
	for i, key := range keys {
		check(key, bytes.Equal(all[key].Value, long[:i*i]))
	}
	fmt.Println("gomemcache: ok")
}
