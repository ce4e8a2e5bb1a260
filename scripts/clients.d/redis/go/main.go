// go-redis does its usual work; values are compared.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

func check(what string, ok bool, err error) {
	if err != nil || !ok {
		log.Fatalf("failed: %s: %v", what, err)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		check("flush", true, client.FlushAll(ctx).Err())
		check("set", true, client.Set(ctx, "k", "v", 100*time.Second).Err())
		value, err := client.Get(ctx, "k").Result()
		check("get", value == "v", err)
		_, err = client.Get(ctx, "none").Result()
		check("nil", err == redis.Nil, nil)
		set, err := client.SetNX(ctx, "k", "w", time.Second).Result()
		check("setnx", !set, err)
		number, err := client.IncrBy(ctx, "n", 5).Result()
		check("incr", number == 5, err)
		values, err := client.MGet(ctx, "k", "none", "n").Result()
		check("mget", len(values) == 3 && values[0] == "v" && values[1] == nil && values[2] == "5", err)
		left, err := client.TTL(ctx, "k").Result()
		check("ttl", left > 0 && left <= 100*time.Second, err)
		err = client.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Incr(ctx, "n")
				return pipe.Set(ctx, "k", "x", 0).Err()
			})
			return err
		}, "n")
		check("transaction", true, err)
		err = client.Watch(ctx, func(tx *redis.Tx) error {
			client.Set(ctx, "n", "other", 0)
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "n", "lost", 0).Err() })
			return err
		}, "n")
		check("watch", err == redis.TxFailedErr, nil)
		for i := 0; i < 300; i++ {
			client.Set(ctx, fmt.Sprint("key:", i), i, 0)
		}
		found := 0
		for keys := client.Scan(ctx, 0, "key:*", 50).Iterator(); keys.Next(ctx); {
			found++
		}
		check("scan", found == 300, nil)
		listener := client.Subscribe(ctx, "news")
		_, err = listener.Receive(ctx)
		check("subscribe", true, err)
		check("publish", true, client.Publish(ctx, "news", "hi").Err())
		message, err := listener.ReceiveMessage(ctx)
		check("message", message.Payload == "hi", err)
		listener.Close()
		client.Close()
	}
	fmt.Println("passed: go-redis, RESP2 and RESP3")
}
