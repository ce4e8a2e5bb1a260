import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CachedData;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.transcoders.Transcoder;

/** spymemcached at a cluster: writes keys of its own, and reads those of all clients. Usage: Clients ADDRESS write | read CLIENT... */
public class Clients {
    static final int KEYS = 100;

    /** Bytes as they are, whatever flags another client gave them. */
    static class Raw implements Transcoder<String> {
        public boolean asyncDecode(CachedData data) {
            return false;
        }

        public CachedData encode(String text) {
            return new CachedData(0, text.getBytes(StandardCharsets.UTF_8), getMaxSize());
        }

        public String decode(CachedData data) {
            return new String(data.getData(), StandardCharsets.UTF_8);
        }

        public int getMaxSize() {
            return CachedData.MAX_SIZE;
        }
    }

    static void check(String what, boolean is) {
        if (!is) {
            System.err.println("spymemcached: " + what);
            System.exit(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        java.util.logging.Logger.getLogger("net.spy.memcached").setLevel(java.util.logging.Level.SEVERE);
        MemcachedClient client = new MemcachedClient(new DefaultConnectionFactory(), AddrUtil.getAddresses(arguments[0]));
        List<String> others = Arrays.asList(arguments).subList(2, arguments.length);
        if (arguments[1].equals("write")) {
            for (int i = 0; i < KEYS; i++) {
                check("cannot write", client.set("spymemcached:" + i, 0, "spymemcached-" + i, new Raw()).get());
            }
            System.out.println("spymemcached");
        }
        for (String other : others) {
            List<String> wanted = new ArrayList<>();
            for (int i = 0; i < KEYS; i++) {
                wanted.add(other + ":" + i);
            }
            Map<String, String> found = client.getBulk(wanted, new Raw());
            for (int i = 0; i < KEYS; i++) {
                check(wanted.get(i), (other + "-" + i).equals(found.get(wanted.get(i))));
            }
        }
        if (!others.isEmpty()) {
            System.err.println("spymemcached: finds the keys of " + String.join(", ", others));
        }
        client.shutdown();
    }
}
