// The job of the figure test-kit for kfake, the imitation of a cluster in franz-go.
//
// It starts a cluster and makes one test after the other, as test_kit_job.py does: a new topic, one
// record in and out, and its offset committed to a group. It prints a line when the first test is
// done, and then the median of the further ones in milliseconds. The argument is their number.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const withinSeconds = 30

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func create(ctx context.Context, client *kgo.Client, topic string) [16]byte {
	request := kmsg.NewPtrCreateTopicsRequest()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, 1, 1
	request.Topics = append(request.Topics, wanted)
	response, err := request.RequestWith(ctx, client)
	check(err)
	check(kerr.ErrorForCode(response.Topics[0].ErrorCode))
	return response.Topics[0].TopicID
}

func commit(ctx context.Context, client *kgo.Client, topic string, id [16]byte) {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group = "test"
	in := kmsg.NewOffsetCommitRequestTopic()
	in.Topic, in.TopicID = topic, id
	partition := kmsg.NewOffsetCommitRequestTopicPartition()
	partition.Offset = 1
	in.Partitions = append(in.Partitions, partition)
	request.Topics = append(request.Topics, in)
	response, err := request.RequestWith(ctx, client)
	check(err)
	check(kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode))
}

func test(addresses []string, topic string) {
	ctx, cancel := context.WithTimeout(context.Background(), withinSeconds*time.Second)
	defer cancel()
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}
	producer, err := kgo.NewClient(kgo.SeedBrokers(addresses...))
	check(err)
	defer producer.Close()
	id := create(ctx, producer, topic)
	record := &kgo.Record{Topic: topic, Value: []byte("first")}
	check(producer.ProduceSync(ctx, record).FirstErr())
	consumer, err := kgo.NewClient(kgo.SeedBrokers(addresses...), kgo.ConsumePartitions(from))
	check(err)
	defer consumer.Close()
	fetches := consumer.PollFetches(ctx)
	check(fetches.Err())
	if found := fetches.Records(); len(found) != 1 || string(found[0].Value) != "first" {
		check(fmt.Errorf("%d records of %s", len(found), topic))
	}
	commit(ctx, consumer, topic, id)
}

func main() {
	further, err := strconv.Atoi(os.Args[1])
	check(err)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	check(err)
	defer cluster.Close()
	test(cluster.ListenAddrs(), "first")
	fmt.Println("first")
	took := make([]float64, further)
	for number := range took {
		began := time.Now()
		test(cluster.ListenAddrs(), fmt.Sprintf("further-%d", number))
		took[number] = time.Since(began).Seconds() * 1000
	}
	sort.Float64s(took)
	fmt.Println(took[further/2])
}
