from bench.brokers import running
from bench.members import Members
from confluent_kafka.admin import AdminClient


def test_all_members_are_in_the_group_before_and_after_a_rebalance() -> None:
    with running("Ottla", None, {"group.initial.rebalance.delay.ms": "500"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})

        def members() -> set[str]:
            described = admin.describe_consumer_groups(["g"])["g"].result(30)
            assert described.state.name == "STABLE"
            return {each.member_id for each in described.members}

        with Members(broker.address, "g", 3) as group:
            before = members()
            assert len(before) == 3
            group.rebalance()
            assert members() == before
