// gomemcache at a cluster: writes keys of its own, and reads those of all clients.
// Usage: clients ADDRESS write | read CLIENT...
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const keys = 100

func check(what string, is bool) {
	if !is {
		fmt.Fprintln(os.Stderr, "gomemcache:", what)
		os.Exit(1)
	}
}

func main() {
	client := memcache.New(os.Args[1])
	client.Timeout = 5 * time.Second
	if os.Args[2] == "write" {
		for i := 0; i < keys; i++ {
			item := memcache.Item{Key: fmt.Sprintf("gomemcache:%d", i), Value: []byte(fmt.Sprintf("gomemcache-%d", i))}
			check("cannot write", client.Set(&item) == nil)
		}
		fmt.Println("gomemcache")
		return
	}
	for _, other := range os.Args[3:] {
		var wanted []string
		for i := 0; i < keys; i++ {
			wanted = append(wanted, fmt.Sprintf("%s:%d", other, i))
		}
		found, err := client.GetMulti(wanted)
		check("does not find all of "+other, err == nil && len(found) == keys)
		for i, key := range wanted {
			check(key, string(found[key].Value) == fmt.Sprintf("%s-%d", other, i))
		}
	}
	fmt.Fprintln(os.Stderr, "gomemcache: finds the keys of", strings.Join(os.Args[3:], ", "))
}
