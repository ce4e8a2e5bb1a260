// What a consumer that reads what is committed gets of a topic, with Kafka's own client: one line for each record,
// partition, key and value in base64; "-" for none.
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class Consume {
    public static void main(String[] arguments) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "127.0.0.1:" + arguments[0]);
        properties.put("isolation.level", "read_committed");
        properties.put("check.crcs", "true");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        StringBuilder out = new StringBuilder();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            ArrayList<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(arguments[1])
                .forEach(p -> partitions.add(new TopicPartition(p.topic(), p.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> {
                    out.append(record.partition()).append(' ').append(text(record.key())).append(' ');
                    out.append(text(record.value())).append('\n');
                });
            }
        }
        System.out.print(out);
    }

    static String text(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
