import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/** Assigns the tasks of each group in a file of JSON: who has which, in another such file. */
class KafkasAssignor {
    record Subtopologies(List<String> subtopologies, JsonNode said) implements TopologyDescriber {
        public int maxNumInputPartitions(String name) {
            return said.get(name).get("tasks").asInt();
        }

        public boolean isStateful(String name) {
            return said.get(name).get("stateful").asBoolean();
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] files) throws Exception {
        List<Object> found = new ArrayList<>();
        for (JsonNode group : JSON.readTree(new File(files[0]))) {
            found.add(assigned(group));
        }
        JSON.writeValue(new File(files[1]), found);
    }

    private static Map<String, List<Object>> assigned(JsonNode group) {
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            members.put(member.get("id").asText(), member(member));
        }
        List<String> names = new ArrayList<>();
        group.get("subtopologies").fieldNames().forEachRemaining(names::add);
        Map<String, List<Object>> found = new HashMap<>();
        int standbys = group.get("standbys").asInt();
        GroupSpecImpl spec = new GroupSpecImpl(members, new AssignmentConfigsImpl(standbys, List.of()));
        Subtopologies topology = new Subtopologies(names, group.get("subtopologies"));
        for (Map.Entry<String, MemberAssignment> each :
                new StickyTaskAssignor().assign(spec, topology).members().entrySet()) {
            MemberAssignment tasks = each.getValue();
            found.put(each.getKey(), List.of(tasks.activeTasks(), tasks.standbyTasks()));
        }
        return found;
    }

    private static MemberMetadataAndStateImpl member(JsonNode said) {
        TypeReference<Map<String, Set<Integer>>> tasks = new TypeReference<>() {};
        TypeReference<Map<String, Map<Integer, Long>>> offsets = new TypeReference<>() {};
        return new MemberMetadataAndStateImpl(
                Optional.empty(),
                Optional.empty(),
                said.get("process").asText(),
                Map.of(),
                JSON.convertValue(said.get("active"), tasks),
                JSON.convertValue(said.get("standby"), tasks),
                Map.of(),
                JSON.convertValue(said.get("offsets"), offsets),
                Map.of());
    }
}
