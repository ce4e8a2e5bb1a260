// node-redis and ioredis do their usual work; values are compared.
const assert = require("node:assert");
const port = Number(process.argv[2]);

async function nodeRedis() {
  const { createClient } = require("redis");
  for (const RESP of [2, 3]) {
    const client = await createClient({ socket: { port, host: "127.0.0.1" }, RESP }).connect();
    await client.flushAll();
    assert.equal(await client.set("k", "v", { EX: 100 }), "OK");
    assert.equal(await client.get("k"), "v");
    assert.equal(await client.set("k", "w", { NX: true }), null);
    assert.equal(await client.incrBy("n", 5), 5);
    assert.deepEqual(await client.mGet(["k", "none", "n"]), ["v", null, "5"]);
    assert.deepEqual(await client.multi().incr("n").get("n").exec(), [6, "6"]);
    const found = [];
    for await (const keys of client.scanIterator({ MATCH: "*" })) found.push(...[].concat(keys));
    assert.deepEqual(found.sort(), ["k", "n"]);
    const listener = await client.duplicate().connect();
    const heard = new Promise((resolve) => listener.subscribe("news", resolve).then(() => client.publish("news", "hi")));
    assert.equal(await heard, "hi");
    await listener.unsubscribe("news");
    await Promise.all([listener.close(), client.close()]);
  }
}

async function ioredis() {
  const Redis = require("ioredis");
  const client = new Redis(port, "127.0.0.1");
  await client.flushall();
  assert.equal(await client.set("k", "v", "PX", 100000), "OK");
  assert.equal(await client.get("k"), "v");
  assert.equal(await client.incrbyfloat("f", 0.5), "0.5");
  assert.deepEqual(await client.mget("k", "none"), ["v", null]);
  assert.deepEqual(await client.pipeline().incr("n").incr("n").exec(), [[null, 1], [null, 2]]);
  assert.deepEqual(await client.multi().decr("n").del("n").exec(), [[null, 1], [null, 1]]);
  const large = Buffer.alloc(500000, 1);
  await client.set("large", large);
  assert.ok(large.equals(await client.getBuffer("large")));
  const listener = client.duplicate();
  await listener.psubscribe("n*");
  const heard = new Promise((resolve) => listener.on("pmessage", (pattern, channel, text) => resolve(channel + text)));
  await client.publish("news", "hi");
  assert.equal(await heard, "newshi");
  listener.disconnect();
  client.disconnect();
}

(async () => {
  await nodeRedis();
  await ioredis();
  console.log("passed: node-redis, ioredis");
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
