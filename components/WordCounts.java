import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of a topic, exactly once, as a member of a streams group (KIP-1071).
 *
 * Arguments: bootstrap servers, application id, topic to read, topic to write, folder of the state,
 * and more settings as NAME=VALUE.
 */
public class WordCounts {
    public static void main(String[] arguments) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", arguments[4]);
        settings.put("group.protocol", "streams");
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("num.stream.threads", "2");
        settings.put("commit.interval.ms", "100");
        settings.put("auto.offset.reset", "earliest");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        for (int i = 5; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[2])
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.Long()));

        KafkaStreams application = new KafkaStreams(builder.build(), settings);
        CountDownLatch ended = new CountDownLatch(1);
        application.setStateListener((now, before) -> System.out.println("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            application.close(Duration.ofSeconds(30));
            ended.countDown();
        }));
        application.start();
        ended.await();
    }
}
