import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactory;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;

/** spymemcached in both of its protocols; values are compared. */
public class Clients {
    static void check(String what, boolean is) {
        if (!is) {
            System.err.println("spymemcached: " + what);
            System.exit(1);
        }
    }

    static void work(String address, String protocol, ConnectionFactory factory) throws Exception {
        MemcachedClient client = new MemcachedClient(factory, AddrUtil.getAddresses(address));
        check("set", client.set("java", 100, "value").get());
        check("get", "value".equals(client.get("java")));
        CASValue<Object> seen = client.gets("java");
        check("cas", client.cas("java", seen.getCas(), "next") == CASResponse.OK);
        check("lost cas", client.cas("java", seen.getCas(), "lost") == CASResponse.EXISTS);
        check("add", !client.add("java", 0, "x").get() && client.replace("java", 0, "5").get());
        check("incr", client.incr("java", 7) == 12 && client.decr("java", 20) == 0);
        check("incr default", client.incr("javan" + protocol, 1, 10) == 10 && client.incr("javan" + protocol, 5) == 15);
        check("touch", client.touch("java", 10).get());
        check("delete", client.delete("java").get() && client.get("java") == null);
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            keys.add("java" + i);
            client.set("java" + i, 0, "x".repeat(i * 50));
        }
        Map<String, Object> all = client.getBulk(keys);
        check("bulk size", all.size() == 300);
        for (int i = 0; i < 300; i++) {
            check("bulk " + i, "x".repeat(i * 50).equals(all.get("java" + i)));
        }
        check("stats", client.getStats().values().iterator().next().containsKey("curr_items"));
        client.shutdown();
        System.out.println("spymemcached " + protocol + ": ok");
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        java.util.logging.Logger.getLogger("net.spy.memcached").setLevel(java.util.logging.Level.SEVERE);
        work("127.0.0.1:" + arguments[0], "text", new DefaultConnectionFactory());
        work("127.0.0.1:" + arguments[0], "binary", new BinaryConnectionFactory());
    }
}
